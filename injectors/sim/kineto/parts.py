"""What an event's text consists of: fixed text, and fields that differ by rank and step.

Events are written as lists of parts. Times are points of an op: how far (Q16) between the ends of
one of the segments into which an op's time falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

ONE = 65536


class Segment(IntEnum):
    """Stretches of an op's time.

    HOST: The thread prepares: Python, dispatch.
    CALL: The runtime call, or the work that the thread does itself.
    TAIL: The thread returns.
    DEVICE: The device, or the transfer, works.
    """

    HOST = 0
    CALL = 1
    TAIL = 2
    DEVICE = 3


class Slot(IntEnum):
    """Numbers that differ by op, rank or step.

    ID: First external id of the op's own operators and ranges.
    LINK: External id of what launched.
    CORRELATION: First correlation of the op's runtime calls.
    SEQUENCE: Joins forward and backward operators.
    FLOW: Of the arrow between them.
    ORDER: Number of a collective within its process group.
    STEP: Number of the step.
    DEVICE: Number of the rank's GPU on its host.
    """

    ID = 0
    LINK = 1
    CORRELATION = 2
    SEQUENCE = 3
    FLOW = 4
    ORDER = 5
    STEP = 6
    DEVICE = 7


class Point(NamedTuple):
    """A moment of the item's first (`of` 0) or second (1) op, moved by `nudge_ns`."""

    segment: Segment
    share_q16: int
    of: int = 0
    nudge_ns: int = 0


class Time(NamedTuple):
    """The time of a point, in us with three decimals."""

    point: Point


class Length(NamedTuple):
    """The time between two points, in us with three decimals."""

    first: Point
    last: Point


class Number(NamedTuple):
    """The number of a slot plus an offset."""

    slot: Slot
    offset: int = 0


class Rate(NamedTuple):
    """So many bytes over the time between two points, in GB/s with six decimals."""

    bytes: int
    first: Point
    last: Point


Part = str | Time | Length | Number | Rate
Parts = list[Part]


def start_of(segment: Segment) -> Point:
    """Return the point at which a segment begins."""
    return Point(segment, 0)


def end_of(segment: Segment) -> Point:
    """Return the point at which a segment ends."""
    return Point(segment, ONE)


def joined(pieces: Iterable[Parts], between: str) -> Parts:
    """Put parts after each other with a text between them."""
    found: Parts = []
    for piece in pieces:
        if found:
            found.append(between)
        found.extend(piece)
    return found
