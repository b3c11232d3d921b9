"""Intervals of rates: Wilson's on as many cases as grouped ones are worth.

Wilson's interval (1927) on an effective sample size, with Student's t over groups in place of
the normal quantile (Korn and Graubard, 1998).
"""

from __future__ import annotations

import numpy as np

from scorers.intervals import (
    LEVEL,
    MIN_ICC,
    Array,
    Bounds,
    Codes,
    degrees_of_freedom,
    t_quantile,
    too_few,
)


def rate_bounds(
    values: Array, groups: Codes, level: float = LEVEL, weights: Array | None = None
) -> Bounds:
    """Bounds of the mean of values within 0..1 that come in groups.

    With weights w, sums W of them over groups, and correlation r within a group, the mean is
    worth (sum w)^2 / ((1-r) sum w^2 + r sum W^2) independent values: n / (1 + (m-1) r) where
    all weights are 1, m being the mean size of a case's group.

    Args:
        values: One value per unit, shape (n,).
        groups: Number of the unit's group, shape (n,).
        level: Coverage.
        weights: Weight of each unit, shape (n,); all alike if None.
    """
    weights = np.ones(len(values)) if weights is None else weights
    present = np.bincount(groups) > 0
    absent = too_few(int(present.sum()))
    if absent:
        return absent
    icc = max(intraclass_correlation(values, groups), MIN_ICC)
    sums = np.bincount(groups, weights=weights)[present]
    squares = np.bincount(groups, weights=weights**2)[present]
    variances = (1 - icc) * squares + icc * sums**2
    total = float(sums.sum())
    rate = float((values * weights).sum()) / total
    quantile = t_quantile(degrees_of_freedom(variances), level)
    return Bounds(*wilson(rate, total**2 / float(variances.sum()), quantile))


def wilson(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score bounds for a rate among `n` units.

    >>> [round(bound, 4) for bound in wilson(0.5, 10, 1.96)]
    [0.2366, 0.7634]
    """
    square = quantile**2 / n
    centre = (rate + square / 2) / (1 + square)
    half = quantile / (1 + square) * (max(rate * (1 - rate), 0) / n + square / (4 * n)) ** 0.5
    # Exact where rounding would leave 1e-17: no success has the bound 0, no failure the bound 1.
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return low, high


def intraclass_correlation(values: Array, groups: Codes) -> float:
    """ANOVA estimate of the intraclass correlation (Donner, 1986); 0 where undefined.

    >>> intraclass_correlation(np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1]))
    1.0
    """
    sizes = np.bincount(groups).astype(float)
    sums = np.bincount(groups, weights=values)[sizes > 0]
    sizes = sizes[sizes > 0]
    n, k = sizes.sum(), len(sizes)
    if not 1 < k < n:
        return 0.0
    between = float((sums**2 / sizes).sum() - sums.sum() ** 2 / n) / (k - 1)
    within = float((values**2).sum() - (sums**2 / sizes).sum()) / (n - k)
    mean_size = (n - (sizes**2).sum() / n) / (k - 1)
    total = between + (mean_size - 1) * within
    return float((between - within) / total) if total > 0 else 0.0
