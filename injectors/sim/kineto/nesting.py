"""How named ranges lie in each other and around ops, on one host thread."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from injectors.sim.program import Span

ANNOTATION, OPERATOR = "user_annotation", "cpu_op"


@dataclass(frozen=True)
class Range:
    """A range as far as it was gone through.

    Attributes:
        number: Of the span in the program.
        first, last: Ops at its ends that were done.
        depth: Ranges around it.
    """

    number: int
    span: Span
    first: int
    last: int
    depth: int = 0


@dataclass(frozen=True)
class Around:
    """The innermost ranges around an op, None for none: of any kind, by annotation, by operator."""

    any: Range | None = None
    annotation: Range | None = None
    operator: Range | None = None


def present_ranges(spans: Sequence[tuple[int, Span, int, int]], done: Sequence[int]) -> list[Range]:
    """Cut spans (number, span, first op, last op) to the ops that were done; outermost first.

    Args:
        spans: All on one thread.
        done: Numbers of the ops that the thread did, ascending.
    """
    found = []
    for number, span, first, last in spans:
        low, high = bisect_left(done, first), bisect_right(done, last) - 1
        if low <= high:
            found.append(Range(number, span, done[low], done[high]))
    return sorted(found, key=_outermost_first)


def _outermost_first(found: Range) -> tuple[int, int, bool, int]:
    """Of equal ranges annotations are outside, later ones of them; earlier ones of operators."""
    operator = found.span.category != ANNOTATION
    return found.first, -found.last, operator, found.number if operator else -found.number


def nested(ranges: Sequence[Range], done: Sequence[int]) -> tuple[list[Range], dict[int, Around]]:
    """Find each range's depth, and what is around each op.

    Args:
        ranges: As from `present_ranges`.
        done: Numbers of the ops that the thread did, ascending.
    """
    stack: list[tuple[Range, Around]] = []
    placed: list[Range] = []
    around: dict[int, Around] = {}
    waiting = iter([*ranges, None])
    upcoming = next(waiting)
    for op in done:
        while stack and stack[-1][0].last < op:
            stack.pop()
        while upcoming is not None and upcoming.first == op:
            own = Range(upcoming.number, upcoming.span, upcoming.first, upcoming.last, len(stack))
            stack.append((own, _inside(own, stack[-1][1] if stack else Around())))
            placed.append(own)
            upcoming = next(waiting)
        around[op] = stack[-1][1] if stack else Around()
    return placed, around


def _inside(own: Range, outer: Around) -> Around:
    if own.span.category == ANNOTATION:
        return Around(own, own, outer.operator)
    if own.span.category == OPERATOR:
        return Around(own, outer.annotation, own)
    return Around(own, outer.annotation, outer.operator)
