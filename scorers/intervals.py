"""What all intervals share: bounds, how few groups are too few, and t on deleted groups.

Cases of one group resemble each other, so the unit of every interval is the group. Groups of
unlike size tell less than as many of one size; their degrees of freedom are Satterthwaite's
(1946).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

LEVEL = 0.95
MIN_GROUPS = 6
# Few groups cannot show that their cases are alike, so at least this correlation is assumed.
MIN_ICC = 0.3


@dataclass(frozen=True)
class Bounds:
    """Two-sided bounds; both None where `note` says why there are none."""

    low: float | None
    high: float | None
    note: str | None = None

    def within(self, low: float, high: float) -> Bounds:
        """Return the bounds cut to the range that the figure can have."""
        if self.low is None or self.high is None:
            return self
        return Bounds(min(max(self.low, low), high), max(min(self.high, high), low), self.note)


def too_few(groups: int, least: int = MIN_GROUPS) -> Bounds | None:
    """Return the absent bounds of a figure from fewer groups than it needs.

    >>> too_few(5).note
    'no interval: 5 groups, at least 6 are needed'
    """
    if groups >= least:
        return None
    return Bounds(None, None, f"no interval: {groups} groups, at least {least} are needed")


def count_groups(groups: Codes) -> int:
    """Return how many groups the numbers name."""
    return int(np.count_nonzero(np.bincount(groups)))


def degrees_of_freedom(variances: Array) -> float:
    """Return the degrees of freedom of a sum over groups that vary unlike each other.

    (sum v)^2 / sum v^2 - 1, at least 1: groups - 1 where all are alike.

    >>> degrees_of_freedom(np.ones(6))
    5.0
    """
    total = float(variances.sum())
    if total <= 0:
        return float(max(len(variances) - 1, 1))
    return float(max(total**2 / float((variances**2).sum()) - 1, 1.0))


def t_quantile(freedom: float, level: float) -> float:
    """Return Student's two-sided quantile."""
    return float(stats.t.ppf((1 + level) / 2, freedom))


def jackknife_error(apart: Array) -> float:
    """Return the standard error of a figure by how it moves when a group is left out.

    sqrt((G-1)/G * sum of squares), with G groups (Tukey, 1958).
    """
    count = len(apart)
    return float(np.sqrt((count - 1) / count * (apart**2).sum()))


def deleted_bounds(
    value: float, apart: Array, units: Array, level: float = LEVEL, *, spent: int = 1
) -> Bounds:
    """Bounds by t on how far a figure moves when each group is left out.

    The degrees of freedom are the least of groups - spent, of Satterthwaite's over the groups'
    sizes, and of those that the squared moves themselves leave when a few of them make up the
    error.

    Args:
        value: The figure from all groups.
        apart: The figure without each group minus `value`, shape (G,).
        units: How many units of each kind every group has, shape (G, kinds).
        level: Coverage.
        spent: How many quantities the figure takes from the groups, 1 for a mean.
    """
    absent = too_few(informing(units))
    if absent:
        return absent
    if not np.isfinite(apart).all():
        return Bounds(None, None, "no interval: it hangs on a single group")
    half = t_quantile(_freedom(apart, units, spent), level) * jackknife_error(apart)
    return Bounds(value - half, value + half)


def informing(units: Array) -> int:
    """Return how many groups have units of the kind that the fewest groups have."""
    return int((units > 0).sum(axis=0).min())


def _freedom(apart: Array, units: Array, spent: int) -> float:
    # As if the units of a group were all one: how alike they are is not known here.
    by_size = [degrees_of_freedom(column[column > 0] ** 2) for column in units.T]
    squares = apart**2
    heaviest = float((squares**2).sum())
    # Of squared normal deviates the fourth moment is three times the square of the second.
    by_weight = 2 * float(squares.sum()) ** 2 / heaviest - 1 if heaviest > 0 else np.inf
    return max(min(*by_size, informing(units) - spent, by_weight), 1.0)
