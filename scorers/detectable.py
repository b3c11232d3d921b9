"""Minimum detectable cost: how much a fault must cost to be found every other time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scorers.intervals import LEVEL, Array, Bounds, deleted_bounds, too_few
from scorers.logistic import Fit, fit
from scorers.metric import Metric

NAME = "minimum_detectable"
MIN_FAULTS, MIN_SEVERITIES, MIN_GROUPS = 12, 4, 6
# Two costs are two severities if the greater is at least this many times the smaller.
SEVERITY_STEP = 1.25
NOT_ENOUGH = (
    f"at least {MIN_FAULTS} faults, {MIN_SEVERITIES} severities and {MIN_GROUPS} groups are needed"
)
FLAT = "recall does not grow with cost"


def minimum_detectable(faults: pd.DataFrame, name: str = NAME, level: float = LEVEL) -> Metric:
    """Return the lost fraction of wall time at which recall (cause and place) is one half.

    From a penalised logistic regression of being found on ln(lost fraction). Undefined where
    there are too few faults, where recall does not grow with cost, and where it is one half
    only beyond the costs that were seen.

    Args:
        faults: The table of faults, its column `group` categorical.
        name: Name of the metric.
        level: Coverage of the interval.
    """
    rows = faults.loc[faults["lost_fraction"] > 0]
    if not enough(rows):
        return Metric.undefined(name, NOT_ENOUGH)
    costs = np.log(rows["lost_fraction"].to_numpy(np.float64))
    right = rows["right_cause_and_locus"].to_numpy(np.float64)
    groups = np.unique(rows["group"].cat.codes.to_numpy(), return_inverse=True)[1]
    # Centred, so that intercept and slope hardly hang on each other.
    design = np.column_stack([np.ones(len(costs)), costs - costs.mean()])
    found = fit(design, right, groups, offset=np.zeros(len(costs)), firth=True)
    if found is None or found.coefficients[1] <= 0:
        return Metric.undefined(name, FLAT)
    at_half = costs.mean() + float(_half(found.coefficients))
    if not costs.min() <= at_half <= costs.max():
        side = "above" if at_half < costs.min() else "below"
        seen = f"{np.exp(costs.min()):.3g} to {np.exp(costs.max()):.3g}"
        return Metric.undefined(name, f"recall is {side} one half at all costs seen ({seen})")
    bounds = _bounds(at_half, found, np.bincount(groups).astype(np.float64), level)
    return Metric.bounded(name, float(np.exp(at_half)), bounds, len(rows), int(groups.max()) + 1)


def enough(faults: pd.DataFrame) -> bool:
    """Tell whether there are faults, severities and groups enough for a curve."""
    return (
        len(faults) >= MIN_FAULTS
        and faults["group"].nunique() >= MIN_GROUPS
        and severities(faults["lost_fraction"].to_numpy(np.float64)) >= MIN_SEVERITIES
    )


def severities(costs: Array) -> int:
    """Count costs that differ: each at least a quarter above the one counted before it.

    >>> severities(np.array([0.1, 0.11, 0.12, 0.13, 0.2]))
    3
    """
    count, last = 0, 0.0
    for cost in np.sort(costs):
        if cost >= last * SEVERITY_STEP:
            count, last = count + 1, cost
    return count


def _half(coefficients: Array) -> Array:
    """Return where the curve is one half, relative to the mean of ln(cost)."""
    result: Array = -coefficients[..., 0] / coefficients[..., 1]
    return result


def _bounds(at_half: float, found: Fit, sizes: Array, level: float) -> Bounds:
    """Bounds on the scale of ln(cost), given back as costs of at most the whole time."""
    absent = too_few(len(sizes))
    if absent:
        return absent
    without = found.coefficients + found.apart
    if not (without[:, 1] > 0).all():
        return Bounds(None, None, "no interval: without one group recall would not grow with cost")
    apart = _half(without) - _half(found.coefficients)
    bounds = deleted_bounds(at_half, apart, sizes[:, None], level)
    if bounds.low is None or bounds.high is None:
        return bounds
    return Bounds(float(np.exp(bounds.low)), float(np.exp(min(bounds.high, 0.0))))
