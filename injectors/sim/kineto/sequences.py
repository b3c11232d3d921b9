"""Which forward operator belongs to which backward one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from injectors.sim.program import Op, Thread


@dataclass(frozen=True)
class Pair:
    """One half of a pair.

    Attributes:
        number: That both halves share, in the order of the forward halves, from 0 in each step.
        arrow: Number of the arrow between them, in the order of the backward halves.
        backward: Which half.
    """

    number: int
    arrow: int
    backward: bool


def paired(ops: Sequence[Op]) -> dict[int, Pair]:
    """Find the pairs among ops with a sequence number, by the number of the op.

    Numbers come again with every micro-batch; the first backward op belongs to the first forward
    one. What has no partner is left out.
    """
    waiting: dict[tuple[tuple[int, ...] | None, int], deque[int]] = defaultdict(deque)
    found: dict[int, int] = {}
    for index, op in enumerate(ops):
        sequence = op.label.sequence
        if sequence is None:
            continue
        key = (op.ranks, sequence)
        if op.thread != Thread.AUTOGRAD:
            waiting[key].append(index)
        elif waiting[key]:
            found[waiting[key].popleft()] = index
    numbers = {forward: number for number, forward in enumerate(sorted(found))}
    halves: dict[int, Pair] = {}
    for arrow, (forward, backward) in enumerate(sorted(found.items(), key=itemgetter(1))):
        halves[forward] = Pair(numbers[forward], arrow, backward=False)
        halves[backward] = Pair(numbers[forward], arrow, backward=True)
    return halves
