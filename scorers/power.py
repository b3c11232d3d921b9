"""How many groups it takes to see a difference, and which difference the groups at hand show.

By the power of the two-sided paired t test at 5 %, to which that of sign flips comes close.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, stats

from scorers.flips import differing
from scorers.intervals import MIN_GROUPS, Array

SIGNIFICANCE = 0.05
POWER = 0.8
MOST_GROUPS = 10**6


def power(effect: float, groups: int) -> float:
    """Return the chance to see a mean of `effect` standard deviations in so many groups.

    >>> round(power(0.5, 34), 2)
    0.81
    """
    quantile = stats.t.ppf(1 - SIGNIFICANCE / 2, groups - 1)
    shift = abs(effect) * math.sqrt(groups)
    upper = stats.nct.sf(quantile, groups - 1, shift)
    lower = stats.nct.cdf(-quantile, groups - 1, shift)
    # The far tail underflows to nan for a large shift; it is nothing then.
    return float(upper) + float(np.nan_to_num(lower))


def groups_needed(parts: Array) -> int | None:
    """Return how many groups like these are needed to see their difference with power 0.8.

    At least so many that six of them can be expected to differ. None where there is no
    difference, or a million groups would not do.

    Args:
        parts: What each group adds to the difference, shape (G,).
    """
    count, difference = len(parts), float(parts.sum())
    if not differing(parts) or abs(difference) < 1e-12:
        return None
    least = math.ceil(MIN_GROUPS * count / differing(parts))
    spread = float((parts * count).std(ddof=1)) if count > 1 else 0.0
    if spread < 1e-12:
        return least
    needed = _fewest(abs(difference) / spread)
    return None if needed is None else max(needed, least)


def visible_difference(parts: Array) -> float | None:
    """Return the difference that these groups show with power 0.8; None below six groups."""
    count = len(parts)
    if count < MIN_GROUPS:
        return None
    spread = float((parts * count).std(ddof=1))
    effect = optimize.brentq(lambda effect: power(effect, count) - POWER, 1e-6, 10.0)
    return spread * float(effect)


def _fewest(effect: float) -> int | None:
    """Return the least number of groups with power 0.8, by bisection."""
    if power(effect, MOST_GROUPS) < POWER:
        return None
    low, high = MIN_GROUPS - 1, MIN_GROUPS
    while power(effect, high) < POWER:
        low, high = high, min(2 * high, MOST_GROUPS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle) >= POWER else (middle, high)
    return high
