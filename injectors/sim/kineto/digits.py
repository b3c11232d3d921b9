"""Writing many decimal numbers into fixed places of a buffer at once.

A number's place is as wide as the largest that will stand there. Before a shorter one the place
keeps NUL bytes, which no JSON text has, so that `squeezed` can take them all out in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from injectors.sim.noise import Ints

Bytes = NDArray[np.uint8]
POWERS = 10 ** np.arange(19, dtype=np.int64)
GROUP = 4  # digits looked up at once
_FOURS = np.array([list(b"%04d" % number) for number in range(10**GROUP)], np.uint8)
_PACKED = _FOURS.view(np.uint32)[:, 0].copy()


def widths(values: Ints) -> Ints:
    """Return how many digits each number >= 0 has.

    >>> widths(np.array([0, 9, 10, 12345])).tolist()
    [1, 1, 2, 5]
    """
    return np.searchsorted(POWERS[1:], values, side="right").astype(np.int64) + 1


@dataclass(frozen=True, eq=False)
class Places:
    """Places of numbers with the same decimals, narrow ones first.

    Attributes:
        which: (n,), which of all values stand there, given without the point.
        width: Digits of the widest place.
        cells: By width: (places, digits), position of each digit in the buffer.
        least: (n,), the smallest number that fills its place.
        decimals: Digits after the point.
    """

    which: Ints
    width: int
    cells: tuple[Ints, ...]
    least: Ints
    decimals: int


def places_of(positions: Ints, whole: Ints, decimals: int, which: Ints) -> Places:
    """Lay out places.

    Args:
        positions: (n,), where each begins in the buffer.
        whole: (n,), digits before the point, at least 1.
        decimals: Digits after it, the same for all.
        which: (n,), the values.
    """
    order = np.argsort(whole, kind="stable")
    positions, whole, which = positions[order], whole[order], which[order]
    least = np.where(whole == 1, 0, POWERS[whole - 1 + decimals])
    width = int(whole[-1]) + decimals
    return Places(which, width, tuple(_cells(positions, whole, decimals)), least, decimals)


def _cells(positions: Ints, whole: Ints, decimals: int) -> Iterator[Ints]:
    for size in np.unique(whole).tolist():
        columns = np.array([*range(size), *range(size + 1, size + 1 + decimals)], np.int64)
        yield positions[whole == size][:, None] + columns


def write(buffer: Bytes, places: Places, values: Ints) -> bool:
    """Write `values[places.which]`, all >= 0 and fitting; returns whether NUL bytes were left."""
    own = values[places.which]
    digits = _digits(own, places.width)
    short = np.flatnonzero(own < places.least)
    if len(short):
        digits[short] *= _meant(own[short], places)
    row = 0
    for cells in places.cells:
        count, size = cells.shape
        buffer[cells] = digits[row : row + count, places.width - size :]
        row += count
    return len(short) > 0


def _digits(own: Ints, width: int) -> Bytes:
    """Return the last `width` digits of numbers, (n, width)."""
    digits = np.empty((len(own), width), np.uint8)
    rest, end = own, width
    while end > 0:
        size = min(GROUP, end)
        higher = rest // 10**GROUP
        group = _PACKED[rest - higher * 10**GROUP].view(np.uint8).reshape(-1, GROUP)
        digits[:, end - size : end] = group[:, GROUP - size :]
        rest, end = higher, end - size
    return digits


def _meant(own: Ints, places: Places) -> NDArray[np.bool_]:
    """Flag the digits from each number's first one on, at the latest the one before the point."""
    columns = np.arange(places.width)
    led = own[:, None] >= POWERS[places.width - 1 - columns]
    return np.asarray(led | (columns >= places.width - 1 - places.decimals))


def squeezed(text: bytes) -> bytes:
    """Take out all NUL bytes."""
    return text.replace(b"\0", b"")
