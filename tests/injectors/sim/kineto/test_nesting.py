"""Ranges around ranges and ops."""

from __future__ import annotations

from injectors.sim.kineto.nesting import nested, present_ranges
from injectors.sim.kineto.sequences import Pair, paired
from injectors.sim.program import Kind, Label, Op, Span, Thread


def spans(*ends: tuple[str, int, int, str]) -> list[tuple[int, Span, int, int]]:
    return [
        (number, Span(name, str(first), str(last), category=category), first, last)  # type: ignore[arg-type]
        for number, (name, first, last, category) in enumerate(ends)
    ]


def test_the_wider_range_is_outside_and_innermost_ones_are_found() -> None:
    given = spans(
        ("forward", 1, 5, "user_annotation"), ("step", 0, 9, "user_annotation"),
        ("aten::item", 3, 4, "cpu_op"),
    )  # fmt: skip
    done = list(range(10))
    ranges, around = nested(present_ranges(given, done), done)
    assert [(found.span.name, found.depth) for found in ranges] == [
        ("step", 0), ("forward", 1), ("aten::item", 2),
    ]  # fmt: skip
    names = {op: found.any.span.name for op, found in around.items() if found.any}
    assert [names[op] for op in (0, 1, 3, 5, 6)] == [
        "step", "forward", "aten::item", "forward", "step",
    ]  # fmt: skip
    assert around[3].annotation is not None
    assert around[3].annotation.span.name == "forward"


def test_of_equal_ranges_annotations_are_outside_and_operators_in_their_order() -> None:
    given = spans(
        ("outer", 0, 1, "cpu_op"), ("inner", 0, 1, "cpu_op"), ("first", 0, 1, "user_annotation"),
        ("later", 0, 1, "user_annotation"),
    )  # fmt: skip
    names = [found.span.name for found in present_ranges(given, [0, 1])]
    assert names == ["later", "first", "outer", "inner"]


def test_ranges_shrink_to_what_was_done_and_vanish_without() -> None:
    given = spans(("some", 1, 4, "cpu_op"), ("none", 6, 7, "cpu_op"))
    found = present_ranges(given, [0, 2, 3, 8])
    assert [(entry.span.name, entry.first, entry.last) for entry in found] == [("some", 2, 3)]


def half(sequence: int, backward: bool = False, ranks: tuple[int, ...] | None = None) -> Op:
    thread = Thread.AUTOGRAD if backward else Thread.MAIN
    return Op(Kind.KERNEL, "", Label(sequence=sequence), thread, ranks=ranks)


def test_micro_batches_are_paired_in_their_order() -> None:
    ops = [half(0), half(1), half(0), half(1, True), half(0, True), half(0, True), half(5)]
    assert paired(ops) == {
        0: Pair(0, 1, False), 4: Pair(0, 1, True),
        1: Pair(1, 0, False), 3: Pair(1, 0, True),
        2: Pair(2, 2, False), 5: Pair(2, 2, True),
    }  # fmt: skip


def test_stages_are_paired_apart() -> None:
    ops = [half(0, ranks=(0,)), half(0, ranks=(1,)), half(0, True, (1,)), half(0, True, (0,))]
    found = paired(ops)
    assert found[0].number == found[3].number != found[1].number == found[2].number
