"""Writing many decimal numbers into fixed places of a text at once.

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
class Slots:
    """Places of numbers in a text.

    Attributes:
        first: (n,), position of each one's first byte.
        whole: (n,), digits before the point, at least 1.
        decimals: (n,), digits after it; numbers are given without the point.
    """

    first: Ints
    whole: Ints
    decimals: Ints


@dataclass(frozen=True, eq=False)
class _Places:
    """Places with the same decimals and as many groups of digits to look up, narrow ones first.

    Attributes:
        which: (n,), which of all numbers stand there.
        width: Digits of the widest place.
        cells: By width: (places, digits), position of each digit.
        least: (n,), the smallest number that fills its place.
        decimals: Digits after the point.
    """

    which: Ints
    width: int
    cells: tuple[Ints, ...]
    least: Ints
    decimals: int


class NumpyWriter:
    """Writes numbers into the same places of one text after the other."""

    def __init__(self, slots: Slots) -> None:
        kinds = slots.decimals * len(POWERS) + -(-(slots.whole + slots.decimals) // GROUP)
        self._places = [
            _places(slots, np.flatnonzero(kinds == kind), int(kind) // len(POWERS))
            for kind in np.unique(kinds)
        ]

    def write(self, text: Bytes, values: Ints) -> bool:
        """Write numbers, all >= 0 and fitting; returns whether NUL bytes were left."""
        blank = [_write(text, places, values) for places in self._places]
        return any(blank)


def _places(slots: Slots, which: Ints, decimals: int) -> _Places:
    which = which[np.argsort(slots.whole[which], kind="stable")]
    whole = slots.whole[which]
    least = np.where(whole == 1, 0, POWERS[whole - 1 + decimals])
    cells = tuple(_cells(slots.first[which], whole, decimals))
    return _Places(which, int(whole[-1]) + decimals, cells, least, decimals)


def _cells(first: Ints, whole: Ints, decimals: int) -> Iterator[Ints]:
    for size in np.unique(whole).tolist():
        columns = np.array([*range(size), *range(size + 1, size + 1 + decimals)], np.int64)
        yield first[whole == size][:, None] + columns


def _write(text: Bytes, places: _Places, values: Ints) -> bool:
    own = values[places.which]
    digits = _digits(own, places.width)
    short = np.flatnonzero(own < places.least)
    if len(short):
        digits[short] *= _meant(own[short], places)
    row = 0
    for cells in places.cells:
        count, size = cells.shape
        text[cells] = digits[row : row + count, places.width - size :]
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


def _meant(own: Ints, places: _Places) -> NDArray[np.bool_]:
    """Flag the digits from each number's first one on, at the latest the one before the point."""
    columns = np.arange(places.width)
    led = own[:, None] >= POWERS[places.width - 1 - columns]
    return np.asarray(led | (columns >= places.width - 1 - places.decimals))


def squeezed(text: bytes) -> bytes:
    """Take out all NUL bytes."""
    return text.replace(b"\0", b"")
