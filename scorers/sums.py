"""Intervals of smooth functions of sums over groups.

Under 30 groups t on how the figure moves when a group is left out; from 30 on bootstrap-t
(Efron and Tibshirani, 1993, chapter 12), which follows the figure where it is skewed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from scorers.intervals import (
    LEVEL,
    Array,
    Bounds,
    deleted_bounds,
    informing,
    jackknife_error,
    too_few,
)

# Maps sums, columns along the last axis, to the statistic along the others.
Statistic = Callable[[Array], Array]

BOOTSTRAP_GROUPS = 30
# From here on t and bootstrap-t agree, and the draws would only cost memory.
MANY_GROUPS = 2000
RESAMPLES = 2000
MIN_FINITE = 0.9
NO_ERROR = 1e-9  # a standard error below this is rounding: the groups are all alike


def statistic_bounds(
    sums: Array,
    statistic: Statistic,
    *,
    units: Array | None = None,
    seed: int = 0,
    level: float = LEVEL,
) -> Bounds:
    """Bounds of a smooth function of summed columns.

    Args:
        sums: One row of sums per group, shape (G, columns).
        statistic: The function; must accept leading axes.
        units: How many units of each kind every group has, shape (G, kinds); one each if None.
        seed: Seed of the bootstrap.
        level: Coverage.
    """
    units = np.ones((len(sums), 1)) if units is None else units
    absent = too_few(informing(units))
    if absent:
        return absent
    totals = sums.sum(axis=0)
    value = float(statistic(totals))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = statistic(totals - sums) - value
    if informing(units) >= BOOTSTRAP_GROUPS and len(sums) <= MANY_GROUPS:
        error = jackknife_error(apart)
        ratios = _studentised(sums, statistic, value, seed) if error > NO_ERROR else np.empty(0)
        if len(ratios) >= MIN_FINITE * RESAMPLES:
            tail = (1 - level) / 2
            upper, lower = np.quantile(ratios, [1 - tail, tail])
            return Bounds(value - float(upper) * error, value - float(lower) * error)
    return deleted_bounds(value, apart, units, level)


def standard_error(totals: Array, covariance: Array, groups: int, statistic: Statistic) -> Array:
    """Linearised standard error of `statistic(totals)`, sums of `groups` independent rows.

    The variance is g' (G C) g with g the gradient at the totals (central differences) and C
    the covariance of the rows. Leading axes of `totals` and `covariance` are kept.
    """
    covariance = np.atleast_2d(covariance)
    step = 1e-5 * (1 + np.abs(totals))
    columns = totals.shape[-1]
    gradient = np.empty_like(totals)
    for k in range(columns):
        move = np.zeros_like(totals)
        move[..., k] = step[..., k]
        difference = statistic(totals + move) - statistic(totals - move)
        gradient[..., k] = difference / (2 * step[..., k])
    variance = np.einsum("...i,...ij,...j->...", gradient, covariance, gradient)
    error: Array = np.sqrt(np.maximum(variance * groups, 0))
    return error


def _studentised(sums: Array, statistic: Statistic, value: float, seed: int) -> Array:
    """Return the finite (resampled - value) / standard error over resamples of the groups."""
    count, columns = sums.shape
    draws = _draws(count, seed)
    products = (sums[:, :, None] * sums[:, None, :]).reshape(count, -1)
    totals = draws @ sums
    mean = totals / count
    covariance = (draws @ products).reshape(-1, columns, columns) / count
    covariance = (covariance - mean[:, :, None] * mean[:, None, :]) * count / (count - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = standard_error(totals, covariance, count, statistic)
        ratios = (statistic(totals) - value) / np.where(errors > NO_ERROR, errors, np.nan)
    finite: Array = ratios[np.isfinite(ratios)]
    return finite


@lru_cache(maxsize=2)
def _draws(groups: int, seed: int) -> Array:
    """How often each group is drawn in each resample, shape (RESAMPLES, groups)."""
    chosen = np.random.default_rng(seed).integers(groups, size=(RESAMPLES, groups))
    chosen += np.arange(RESAMPLES)[:, None] * groups
    counts = np.bincount(chosen.ravel(), minlength=RESAMPLES * groups)
    return counts.reshape(RESAMPLES, groups).astype(np.float64)
