"""Operators on host threads: those of an op's label, and the small ones that go along with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from injectors.sim.kineto.parts import ONE, Point, Segment


@dataclass(frozen=True)
class Small:
    """An operator that launches nothing, with those inside of it."""

    name: str
    inside: tuple[Small, ...] = ()


EMPTY, STRIDED, VIEW = Small("aten::empty"), Small("aten::empty_strided"), Small("aten::view")
AS_STRIDED = Small("aten::as_strided")
TRANSPOSED = Small("aten::t", (Small("aten::transpose", (AS_STRIDED,)),))
# Operator -> what it calls before what it launches (or before the next operator of the label).
COMPANIONS: dict[str, tuple[Small, ...]] = {
    "aten::linear": (TRANSPOSED,),
    "aten::addmm": (Small("aten::expand", (AS_STRIDED,)),),
    "aten::_to_copy": (STRIDED,),
    "aten::clone": (Small("aten::empty_like", (STRIDED,)),),
    "aten::native_layer_norm": (EMPTY, EMPTY, EMPTY),
    "aten::native_layer_norm_backward": (Small("aten::empty_like", (STRIDED,)),),
    "aten::scaled_dot_product_attention": (Small("aten::transpose", (AS_STRIDED,)),),
    "aten::_flash_attention_forward": (Small("aten::empty_like", (STRIDED,)), EMPTY),
    "aten::_flash_attention_backward": (Small("aten::empty_like", (STRIDED,)), EMPTY),
    "aten::embedding": (Small("aten::reshape", (VIEW,)),),
    "aten::embedding_dense_backward": (Small("aten::zeros", (EMPTY,)),),
    "aten::cross_entropy_loss": (VIEW,),
    "aten::bmm": (EMPTY,),
    "aten::_convolution": (EMPTY,),
    "aten::cudnn_batch_norm": (EMPTY, EMPTY),
    "aten::cudnn_batch_norm_backward": (EMPTY, EMPTY, EMPTY),
    "aten::max_pool2d_with_indices": (EMPTY,),
    "aten::sum": (Small("aten::as_strided"),),
    "aten::sort": (EMPTY, EMPTY),
    "aten::index_select": (EMPTY,),
    "aten::zeros": (EMPTY,),
}
PYTHON_Q16, ENGINE_Q16 = 19661, 6554  # share of the host's time before the first operator


@dataclass(frozen=True)
class Placed:
    """An operator with the points of its ends.

    Attributes:
        number: Counted from the op's first, in the order in which they begin.
        depth: In the label's own nest from 0; None for what goes along.
    """

    name: str
    first: Point
    last: Point
    number: int
    depth: int | None


class _Layout:
    """Hands out evenly spaced points to begins and ends, in order."""

    def __init__(self) -> None:
        self.names: list[tuple[str, int | None]] = []
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.ticks = 0

    def begin(self, name: str, depth: int | None) -> int:
        self.names.append((name, depth))
        self.begins.append(self.tick())
        self.ends.append(-1)
        return len(self.names) - 1

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def small(self, small: Small) -> None:
        number = self.begin(small.name, None)
        for inner in small.inside:
            self.small(inner)
        self.ends[number] = self.tick()


def placed(names: Sequence[str], begins_q16: int, ends_q16: int) -> list[Placed]:
    """Lay out nested operators, with what goes along, over an op's time.

    Args:
        names: From the outermost to the one that launches.
        begins_q16: Share of the host's time before the outermost begins.
        ends_q16: Share of it by which the innermost and all small ones have begun.
    """
    layout = _Layout()
    for depth, name in enumerate(names):
        layout.begin(name, depth)
        for small in COMPANIONS.get(name, ()):
            layout.small(small)
    return list(_points(layout, len(names), begins_q16, ends_q16))


def _points(layout: _Layout, levels: int, begins_q16: int, ends_q16: int) -> Iterator[Placed]:
    room = ends_q16 - begins_q16
    for number, (name, depth) in enumerate(layout.names):
        first = Point(Segment.HOST, begins_q16 + room * layout.begins[number] // (layout.ticks + 1))
        if depth is None:
            share = begins_q16 + room * layout.ends[number] // (layout.ticks + 1)
            last = Point(Segment.HOST, share)
        else:
            last = Point(Segment.TAIL, ONE // 3 + (levels - depth) * (ONE // 6) // (levels + 1))
        yield Placed(name, first, last, number, depth)
