"""Intervals for clustered data: the unit is the group, never the case.

Rates: Wilson's interval (1927) on an effective sample size n / (1 + (m - 1) * icc), with
Student's t over groups in place of the normal quantile (Korn and Graubard, 1998). Other
statistics of group sums: linearised standard error with t, or bootstrap-t (Efron and
Tibshirani, 1993, chapter 12) from 30 groups on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
# Maps sums, columns along the last axis, to the statistic along the others.
Statistic = Callable[[Array], Array]

MIN_GROUPS = 6
BOOTSTRAP_GROUPS = 30
RESAMPLES = 2000
MIN_ICC = 0.3
MIN_FINITE = 0.9
NO_ERROR = 1e-9  # a standard error below this is rounding: the groups are all alike


@dataclass(frozen=True)
class Bounds:
    """Two-sided bounds; both None where `note` says why there are none."""

    low: float | None
    high: float | None
    note: str | None = None


def too_few(groups: int) -> Bounds | None:
    """Return the absent bounds of a figure from fewer than six groups.

    >>> too_few(5).note
    'no interval: 5 groups, at least 6 are needed'
    """
    if groups >= MIN_GROUPS:
        return None
    return Bounds(None, None, f"no interval: {groups} groups, at least {MIN_GROUPS} are needed")


def rate_bounds(values: Array, groups: npt.NDArray[np.intp], level: float = 0.95) -> Bounds:
    """Bounds of the mean of values within 0..1 that come in groups.

    Args:
        values: One value per unit, shape (n,).
        groups: Number of the unit's group, shape (n,).
        level: Coverage.
    """
    sizes = np.bincount(groups)
    sizes = sizes[sizes > 0]
    absent = too_few(len(sizes))
    if absent:
        return absent
    icc = max(intraclass_correlation(values, groups), MIN_ICC)
    design_effect = 1 + (len(values) / len(sizes) - 1) * icc
    quantile = stats.t.ppf((1 + level) / 2, len(sizes) - 1)
    return Bounds(*wilson(float(values.mean()), len(values) / design_effect, float(quantile)))


def wilson(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score bounds for a rate among `n` units.

    >>> [round(bound, 4) for bound in wilson(0.5, 10, 1.96)]
    [0.2366, 0.7634]
    """
    square = quantile**2 / n
    centre = (rate + square / 2) / (1 + square)
    half = quantile / (1 + square) * (rate * (1 - rate) / n + square / (4 * n)) ** 0.5
    # Exact where rounding would leave 1e-17: no success has the bound 0, no failure the bound 1.
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return low, high


def intraclass_correlation(values: Array, groups: npt.NDArray[np.intp]) -> float:
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


def statistic_bounds(
    sums: Array,
    statistic: Statistic,
    *,
    groups: int | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Bounds:
    """Bounds of a smooth function of summed columns.

    Args:
        sums: One row of sums per group, shape (G, columns).
        statistic: The function; must accept leading axes.
        groups: Number of groups that inform the statistic, if fewer than the rows.
        seed: Seed of the bootstrap.
        level: Coverage.
    """
    informing = len(sums) if groups is None else groups
    absent = too_few(informing)
    if absent:
        return absent
    value = float(statistic(sums.sum(axis=0)))
    error = float(standard_error(sums.sum(axis=0), np.cov(sums.T, ddof=1), len(sums), statistic))
    tail = (1 - level) / 2
    if informing >= BOOTSTRAP_GROUPS and error > NO_ERROR:
        ratios = _studentised(sums, statistic, value, seed)
        if len(ratios) >= MIN_FINITE * RESAMPLES:
            upper, lower = np.quantile(ratios, [1 - tail, tail])
            return Bounds(value - float(upper) * error, value - float(lower) * error)
    half = float(stats.t.ppf(1 - tail, informing - 1)) * error
    return Bounds(value - half, value + half)


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
