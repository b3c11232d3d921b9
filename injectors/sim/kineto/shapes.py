"""Events as arrays: what all ops that look alike in a trace have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from injectors.sim.kineto.parts import Length, Number, Parts, Point, Rate, Time
from injectors.sim.noise import Ints

TIME, LENGTH, NUMBER, RATE = range(4)
DECIMALS = (3, 3, 0, 6)


@dataclass(frozen=True, eq=False)
class Shape:
    """Some events; `texts` are what stands before each field, and after the last one.

    Attributes:
        points: (points, 4): segment, share (Q16), which op, nudge in ns.
        fields: (fields, 4): kind; for TIME, LENGTH and RATE the numbers of two points, for NUMBER
            slot and offset; for RATE bytes.
        events: (events, 2): the field before which each event's text begins, and how many bytes
            of the text there still belong to the event before.
    """

    texts: tuple[bytes, ...]
    points: Ints
    fields: Ints
    events: Ints


class _Writer:
    """Collects the parts of events."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.text: list[str] = []
        self.points: dict[Point, int] = {}
        self.fields: list[tuple[int, int, int, int]] = []
        self.events: list[tuple[int, int]] = []

    def begin(self) -> None:
        self.events.append((len(self.fields), len("".join(self.text).encode())))

    def point(self, point: Point) -> int:
        return self.points.setdefault(point, len(self.points))

    def add(self, parts: Parts) -> None:
        for part in parts:
            if isinstance(part, str):
                self.text.append(part)
                continue
            self.close_text()
            self.fields.append(self.field(part))

    def close_text(self) -> None:
        self.texts.append("".join(self.text).encode())
        self.text.clear()

    def field(self, part: Time | Length | Number | Rate) -> tuple[int, int, int, int]:
        if isinstance(part, Time):
            return TIME, self.point(part.point), 0, 0
        if isinstance(part, Length):
            return LENGTH, self.point(part.first), self.point(part.last), 0
        if isinstance(part, Number):
            return NUMBER, int(part.slot), part.offset, 0
        return RATE, self.point(part.first), self.point(part.last), part.bytes


def shape_of(events: Sequence[Parts]) -> Shape:
    """Make a shape of events, each of which must have a field."""
    writer = _Writer()
    for event in events:
        writer.begin()
        writer.add(event)
    writer.close_text()
    return Shape(
        texts=tuple(writer.texts),
        points=_table(list(writer.points)),
        fields=_table(writer.fields),
        events=_table(writer.events, 2),
    )


def _table(rows: Sequence[Sequence[int]], columns: int = 4) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, columns)
