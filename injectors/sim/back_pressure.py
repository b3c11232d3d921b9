"""Back-pressure: a launch waits until the one `depth` launches earlier on its stream has ended.

Launches of a rank on a stream are numbered through the step. Launch n of a step waits for launch
n - depth of the same step, or, where n < depth, for number n of the last `depth` launches of
earlier steps, which are carried over. In one column of int64 the former is the number of the op,
the latter is -1 - n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from injectors.sim.program import STREAMS, Ints


class Earlier(NamedTuple):
    """`flat[first + each * m]` is what member m of an op waits for; `each` is 0 or 1."""

    first: Ints
    each: Ints
    flat: Ints


class LaunchNumbers:
    """Which op was which launch of a stream, for all ranks."""

    def __init__(self, ranks: int, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"the queue's depth must be at least 1, got {depth}")
        self.depth = depth
        self.counts = np.zeros((STREAMS, ranks), np.int64)
        self._ops: list[Ints] = []

    def number(self, launched: Sequence[tuple[int | None, Ints]]) -> Earlier:
        """Number the launches of a step.

        Args:
            launched: Of each op, its stream (None for what is no launch) and its ranks.

        Returns:
            What each op's launches wait for.
        """
        most = [sum(stream == s for stream, _ in launched) for s in range(STREAMS)]
        ranks = self.counts.shape[1]
        self._ops = [np.full((count, ranks), -1, np.int64) for count in most]
        first, each, parts, size = [], [], [np.zeros(1, np.int64)], 1
        for index, (stream, members) in enumerate(launched):
            waits = parts[0][:0] if stream is None else self._add(index, stream, members)
            uniform = len(waits) == 0 or bool((waits == waits[0]).all())
            part = waits[:1] if uniform else waits
            first.append(size if len(part) else 0)
            each.append(0 if uniform else 1)
            parts.append(part)
            size += len(part)
        return Earlier(np.array(first, np.int64), np.array(each, np.int64), np.concatenate(parts))

    def _add(self, index: int, stream: int, members: Ints) -> Ints:
        numbers = self.counts[stream, members]
        ops = self._ops[stream]
        ops[numbers, members] = index
        self.counts[stream, members] += 1
        before = ops[np.maximum(numbers - self.depth, 0), members]
        return np.asarray(np.where(numbers < self.depth, -1 - numbers, before))

    def carry(self, stream: int, end: Ints, carried: Ints) -> Ints:
        """Return the ends of the last `depth` launches after a step.

        Args:
            stream: Of the launches.
            end: (ops, ranks), when the step's ops ended.
            carried: (depth, ranks), ends of the last launches before the step.
        """
        ranks = np.arange(end.shape[1])
        numbers = self.counts[stream] + np.arange(-self.depth, 0)[:, None]
        earlier: Ints = carried[np.minimum(numbers + self.depth, self.depth - 1), ranks]
        ops = self._ops[stream]
        if not len(ops):
            return earlier
        own = end[ops[np.clip(numbers, 0, len(ops) - 1), ranks], ranks]
        return np.asarray(np.where(numbers < 0, earlier, own))
