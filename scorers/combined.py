"""Intervals of weighted sums of rates, from the rates' own intervals.

Net benefit is such a sum: what is found less what is false. Its events may be so rare that few
groups show any, where t and the bootstrap see no spread and are far too sure; the rates'
Wilson intervals are not. They are put together by the method of variance estimates recovery
(Zou and Donner, 2008), with the correlation between the rates that the groups show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scorers.intervals import LEVEL, Array, Bounds, Codes, count_groups, too_few
from scorers.rates import rate_bounds


@dataclass(frozen=True, eq=False)
class Part:
    """One rate of a sum: its coefficient, values within 0..1 (n,) and their groups (n,)."""

    coefficient: float
    values: Array
    groups: Codes

    @property
    def rate(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())


def combined_bounds(parts: Sequence[Part], group_count: int, level: float = LEVEL) -> Bounds:
    """Bounds of the sum of coefficient times rate.

    With d the distances from the rates to their own bounds, on the side that lowers (raises)
    the sum, and R the correlation of the rates, the bound is sqrt(d' R d) away from the sum.

    Args:
        parts: The rates, each over units of its own or of the same groups.
        group_count: How many groups there are, present in a part or not.
        level: Coverage.
    """
    absent = too_few(min(count_groups(part.groups) for part in parts))
    if absent:
        return absent
    value, down, up = 0.0, [], []
    for part in parts:
        bounds = rate_bounds(part.values, part.groups, level)
        assert bounds.low is not None and bounds.high is not None
        below, above = part.rate - bounds.low, bounds.high - part.rate
        if part.coefficient < 0:
            below, above = above, below
        value += part.coefficient * part.rate
        down.append(abs(part.coefficient) * below)
        up.append(abs(part.coefficient) * above)
    alike = _correlation(parts, group_count)
    return Bounds(value - _length(np.array(down), alike), value + _length(np.array(up), alike))


def _length(distances: Array, alike: Array) -> float:
    return float(np.sqrt(max(float(distances @ alike @ distances), 0.0)))


def _correlation(parts: Sequence[Part], group_count: int) -> Array:
    """Return how the parts move together over groups; a part that never moves moves alone."""
    moves = np.stack(
        [
            np.sign(part.coefficient)
            * np.bincount(part.groups, weights=part.values - part.rate, minlength=group_count)
            for part in parts
        ]
    )
    products = moves @ moves.T
    spread = np.sqrt(np.diag(products))
    spread[spread == 0] = 1.0
    result: Array = products / np.outer(spread, spread)
    np.fill_diagonal(result, 1.0)
    return result
