"""Writing numbers into places in machine code; the same bytes as injectors.sim.kineto.digits.

All is int64; numba keeps the machine code until this file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

from injectors.sim.kineto.digits import Bytes, Slots
from injectors.sim.noise import Ints

Function = TypeVar("Function", bound=Callable[..., object])
ZERO = 48


def _compiled(function: Function) -> Function:
    try:
        return cast(Function, numba.njit(cache=True)(function))
    except RuntimeError:  # no folder that can be written to
        return cast(Function, numba.njit(function))


class NumbaWriter:
    """Writes numbers into the same places of one text after the other."""

    def __init__(self, slots: Slots) -> None:
        point = (slots.decimals > 0).astype("int64")
        self._last = slots.first + slots.whole + slots.decimals + point - 1
        self._whole, self._decimals = slots.whole, slots.decimals

    def write(self, text: Bytes, values: Ints) -> bool:
        """Write numbers, all >= 0 and fitting; returns whether NUL bytes were left."""
        return bool(_write(text, self._last, self._whole, self._decimals, values))


@_compiled
def _write(text: Bytes, last: Ints, whole: Ints, decimals: Ints, values: Ints) -> bool:
    shorter = False
    for number in range(len(values)):
        rest = values[number]
        place = last[number]
        for _ in range(decimals[number]):
            text[place] = ZERO + rest % 10
            rest //= 10
            place -= 1
        if decimals[number]:
            place -= 1  # the point
        left = whole[number] - 1
        text[place] = ZERO + rest % 10
        rest //= 10
        while rest:
            place -= 1
            left -= 1
            text[place] = ZERO + rest % 10
            rest //= 10
        if left:
            shorter = True
    return shorter
