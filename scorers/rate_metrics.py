"""Metrics that are the mean of values within 0..1 over rows of one table.

A new one is one line in RATES.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cases.schema import Verdict
from scorers.intervals import LEVEL, Codes, count_groups
from scorers.levels import LEVELS
from scorers.metric import NO_CASE, NO_FINDING, Metric
from scorers.rates import rate_bounds


@dataclass(frozen=True)
class Rate:
    """The mean of one column of one table; rows whose value is missing do not count.

    `weight` names the column by which the rows are weighted, none if they count alike.
    """

    table: Literal["cases", "faults", "findings"]
    column: str
    verdict: Verdict | None = None
    empty: str = "no case"
    weight: str | None = None


RATES: dict[str, Rate] = {
    "misled_rate": Rate("cases", "misled"),
    "misattribution_rate": Rate("cases", "misled", "faulty", NO_CASE["faulty"]),
    "false_alarm_rate": Rate("cases", "misled", "healthy", NO_CASE["healthy"]),
    "overclaim_rate": Rate("cases", "misled", "undecidable", NO_CASE["undecidable"]),
    "abstained_informed_rate": Rate("cases", "informed", "undecidable", NO_CASE["undecidable"]),
    "coverage": Rate("cases", "answered"),
    "abstention_rate": Rate("cases", "abstained"),
    "failed_rate": Rate("cases", "failed"),
    "unsupported_rate": Rate("cases", "unsupported"),
    "top1": Rate("cases", "top1", "faulty", NO_CASE["faulty"]),
    "top1_wrong": Rate("cases", "top1_wrong", "faulty", NO_CASE["faulty"]),
    "ac_at_3": Rate("cases", "ac_at_3", "faulty", NO_CASE["faulty"]),
    "mrr": Rate("cases", "mrr", "faulty", NO_CASE["faulty"]),
    "window_iou": Rate("faults", "window_iou", empty="no fault has windows"),
    "onset_error": Rate(
        "faults", "onset_error", empty="no fault has windows in a run of known length"
    ),
    "misattributed_time": Rate(
        "faults", "misattributed", empty=NO_CASE["faulty"], weight="lost_fraction"
    ),
    "evidence_support": Rate("findings", "supported", empty="no finding's evidence was checked"),
    **{f"recall_{x}": Rate("faults", f"right_{x}", empty=NO_CASE["faulty"]) for x in LEVELS},
    **{f"precision_{x}": Rate("findings", f"right_{x}", empty=NO_FINDING) for x in LEVELS},
}


def rate(name: str, rule: Rate, frame: pd.DataFrame, level: float = LEVEL) -> Metric:
    """Compute one rate with Wilson's interval.

    Args:
        name: Name of the metric.
        rule: What it is the mean of.
        frame: The rule's table, its column `group` categorical.
        level: Coverage of the interval.
    """
    kept = frame[rule.column].notna().to_numpy(bool)
    if rule.verdict is not None:
        kept = kept & (frame["verdict"] == rule.verdict).to_numpy(bool)
    values = frame[rule.column].to_numpy()[kept].astype(np.float64)
    weights = None
    if rule.weight is not None:
        # A share that came out negative counts as nothing.
        weights = np.maximum(frame[rule.weight].to_numpy(np.float64)[kept], 0.0)
    if not len(values) or (weights is not None and weights.sum() <= 0):
        return Metric.undefined(name, rule.empty)
    groups = codes(frame)[kept]
    bounds = rate_bounds(values, groups, level, weights)
    value = float(np.average(values, weights=weights))
    return Metric.bounded(name, value, bounds, len(values), count_groups(groups))


def codes(rows: pd.DataFrame) -> Codes:
    """Return the number of each row's group, shape (n,)."""
    return np.asarray(rows["group"].cat.codes, dtype=np.intp)
