"""Metrics of calibration: whether confidence is the share that is right.

Over all findings that are true or false; coarse and neutral ones are neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from scorers.intervals import LEVEL, Array, Bounds, Codes, deleted_bounds
from scorers.logistic import fit
from scorers.metric import NO_FINDING, Metric
from scorers.reliability import ece, ece_by_chance, reliability

NAMES = ("calibration_intercept", "calibration_slope", "ece", "ece_by_chance")
# Confidence beyond these counts as these: certainty has no odds.
LEAST, MOST = 0.01, 0.99
ONE_SIDED = "all findings are right, or all are wrong"
SEPARATED = "confidence tells right findings from wrong ones without fail, or not at all"


def calibration(findings: pd.DataFrame, level: float = LEVEL) -> list[Metric]:
    """Compute NAMES.

    - `calibration_intercept`: a of logit P(right) = a + logit(confidence); below 0 is too sure.
    - `calibration_slope`: b of logit P(right) = a + b logit(confidence); below 1 is too
      extreme (Cox, 1958).
    - `ece` and its mean for a perfectly calibrated answer; neither has an interval of its own,
      each is read beside the other.

    Args:
        findings: The table of findings, its column `group` categorical.
        level: Coverage of the intervals.
    """
    rows = findings.loc[findings["right_cause_and_locus"].notna()]
    if rows.empty:
        return [Metric.undefined(name, NO_FINDING) for name in NAMES]
    confidences = rows["confidence"].to_numpy(np.float64)
    right = rows["right_cause_and_locus"].to_numpy(np.float64)
    # Numbered anew: a group without findings is none here.
    groups = np.unique(rows["group"].cat.codes.to_numpy(), return_inverse=True)[1]
    table = reliability(confidences, right)
    count = int(groups.max()) + 1
    errors = zip(NAMES[2:], (ece(table), ece_by_chance(table)), strict=True)
    return [
        *_recalibrations(confidences, right, groups, level),
        *(Metric(name, value, None, None, len(right), count) for name, value in errors),
    ]


def _recalibrations(
    confidences: Array, right: Array, groups: Codes, level: float
) -> Sequence[Metric]:
    if not 0 < right.sum() < len(right):
        return [Metric.undefined(name, ONE_SIDED) for name in NAMES[:2]]
    clipped = np.clip(confidences, LEAST, MOST)
    odds = np.log(clipped / (1 - clipped))
    ones, none = np.ones((len(right), 1)), np.zeros(len(right))
    return [
        _coefficient(NAMES[0], ones, right, groups, odds, level),
        _coefficient(NAMES[1], np.column_stack([ones, odds]), right, groups, none, level)
        if _overlap(odds, right)
        else Metric.undefined(NAMES[1], SEPARATED),
    ]


def _overlap(odds: Array, right: Array) -> bool:
    """Whether some wrong finding is surer than some right one, and the other way round."""
    high, low = odds[right == 1], odds[right == 0]
    return bool(high.min() < low.max() and low.min() < high.max())


def _coefficient(
    name: str, design: Array, right: Array, groups: Codes, offset: Array, level: float
) -> Metric:
    """Return the last coefficient of the regression."""
    found = fit(design, right, groups, offset=offset, firth=False)
    if found is None:
        return Metric.undefined(name, SEPARATED)
    sizes = np.bincount(groups).astype(np.float64)
    value = float(found.coefficients[-1])
    bounds: Bounds = deleted_bounds(value, found.apart[:, -1], sizes[:, None], level)
    return Metric.bounded(name, value, bounds, len(right), len(sizes))
