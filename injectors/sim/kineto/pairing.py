"""Which ranges and ops show that a forward operator and a backward one belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from injectors.sim.kineto.nesting import OPERATOR, Around, Range, nested, present_ranges
from injectors.sim.kineto.sequences import Pair, paired
from injectors.sim.program import Program, Span, Thread

Spans = Mapping[Thread, Sequence[tuple[int, Span, int, int]]]
STEP_NAME = "ProfilerStep#"


@dataclass(frozen=True, eq=False)
class Pairing:
    """Pairs of a program.

    Attributes:
        pairs: Halves of pairs, by op.
        carriers: Of a backward op that lies in ranges of operators: these ranges, from the
            outermost; they stand for it in its pair.
        shown: The halves that ops show themselves.
    """

    pairs: Mapping[int, Pair]
    carriers: Mapping[int, Sequence[int]]
    shown: Mapping[int, Pair]


def spans_of(program: Program, with_steps: bool) -> Spans:
    """Return number, span, first and last op by thread, with one for the whole step or without."""
    places = {op.path: index for index, op in enumerate(program.ops)}
    found: dict[Thread, list[tuple[int, Span, int, int]]] = {thread: [] for thread in Thread}
    for number, span in enumerate(program.spans):
        found[span.thread].append((number, span, places[span.first], places[span.last]))
    if with_steps:
        ops = program.ops
        step = Span(STEP_NAME, ops[0].path, ops[-1].path)
        found[Thread.MAIN].append((len(program.spans), step, 0, len(ops) - 1))
    return found


def pairing(program: Program, spans: Spans) -> Pairing:
    """Find the pairs, and what shows them."""
    pairs = paired(program.ops)
    carriers: dict[int, Sequence[int]] = {}
    for thread, own in spans.items():
        halves = [
            op for op, pair in pairs.items() if pair.backward and program.ops[op].thread == thread
        ]
        operators = [entry for entry in own if entry[1].category == OPERATOR]
        if halves and operators:
            carriers |= _carriers(program, thread, operators, halves)
    shown = {op: pair for op, pair in pairs.items() if op not in carriers}
    return Pairing(pairs, carriers, shown)


def _carriers(
    program: Program,
    thread: Thread,
    operators: Sequence[tuple[int, Span, int, int]],
    halves: Sequence[int],
) -> dict[int, Sequence[int]]:
    done = [index for index, op in enumerate(program.ops) if op.thread == thread]
    ranges, around = nested(present_ranges(operators, done), done)
    return {op: _chain(ranges, around[op]) for op in halves if around[op].operator is not None}


def _chain(ranges: Sequence[Range], around: Around) -> list[int]:
    """Numbers of the innermost range and of those around it, the outermost first."""
    own = around.operator
    assert own is not None
    place = next(number for number, other in enumerate(ranges) if other.number == own.number)
    found = [own]
    for other in reversed(ranges[:place]):
        if other.depth < found[-1].depth and other.last >= own.last:
            found.append(other)
        if other.depth == 0:
            break
    return [entry.number for entry in reversed(found)]
