"""The numbers that events of a program carry in every trace of it, whatever a rank leaves out.

All are counted within a step; from step to step they go on by a fixed stride.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from injectors.sim import noise
from injectors.sim.kineto.op_shapes import OpShapes
from injectors.sim.kineto.pairing import Pairing, Spans
from injectors.sim.kineto.sequences import Pair
from injectors.sim.noise import Ints
from injectors.sim.program import Program

GAP_KEY = 0x6B696E65746F  # of the calls that nobody asked to see, which take correlations too
GAPS = 4


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers by op, and by span.

    Attributes:
        spans: See `pairing.spans_of`.
        pairs, carriers: See `Pairing`.
        carried: Ops that ranges stand for, ascending.
        ids, correlations: First ones by op.
        span_ids: External ids by span.
        orders: By communication op, its number in its process group and how many that group has.
        strides: How many ids, correlations and pairs a step has.
    """

    spans: Spans
    pairs: Mapping[int, Pair]
    carriers: Mapping[int, Sequence[int]]
    carried: Sequence[int]
    ids: Sequence[int]
    correlations: Sequence[int]
    span_ids: Mapping[int, int]
    orders: Mapping[int, tuple[int, int]]
    strides: tuple[int, int, int]

    def carriers_in(self, first: int, last: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield the ops from `first` to `last` that ranges stand for, with these ranges."""
        for op in self.carried[bisect_left(self.carried, first) :]:
            if op > last:
                return
            yield op, self.carriers[op]

    def order(self, op: int) -> tuple[int, int]:
        """Return an op's number in its process group and how many that has; zeros for others."""
        return self.orders.get(op, (0, 0))


def numbered(
    program: Program, spans: Spans, pairs: Pairing, made: Sequence[OpShapes], paths: Ints
) -> Numbers:
    """Number everything.

    Args:
        program: The step.
        spans: Its spans.
        pairs: Its pairs.
        made: Events by op; only how many numbers they take matters.
        paths: (ops,), hashes of their paths.
    """
    begins: dict[int, list[int]] = defaultdict(list)
    for own in spans.values():
        for number, _, first, _ in own:
            begins[first].append(number)
    gaps = noise.below(noise.extend(GAP_KEY, paths), GAPS).tolist()
    ids: list[int] = []
    correlations: list[int] = []
    span_ids: dict[int, int] = {}
    next_id = next_correlation = 0
    for index, shapes in enumerate(made):
        for number in begins.get(index, ()):
            span_ids[number] = next_id
            next_id += 1
        ids.append(next_id)
        correlations.append(next_correlation)
        next_id += shapes.ids
        next_correlation += shapes.correlations + gaps[index] if shapes.correlations else 0
    return Numbers(
        spans=spans,
        pairs=pairs.pairs,
        carriers=pairs.carriers,
        carried=sorted(pairs.carriers),
        ids=ids,
        correlations=correlations,
        span_ids=span_ids,
        orders=_orders(program),
        strides=(next_id, next_correlation, len(pairs.pairs) // 2),
    )


def _orders(program: Program) -> dict[int, tuple[int, int]]:
    counts: dict[str, int] = defaultdict(int)
    places: dict[int, tuple[str, int]] = {}
    for index, op in enumerate(program.ops):
        if op.label.collective is not None:
            group = op.label.collective.group
            places[index] = group, counts[group]
            counts[group] += 1
    return {index: (own, counts[group]) for index, (group, own) in places.items()}
