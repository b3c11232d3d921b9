"""Recall of each domain: where in the system a diagnoser finds what is wrong."""

from __future__ import annotations

import pandas as pd

from scorers.causes import FOUND
from scorers.intervals import LEVEL
from scorers.metric import Metric
from scorers.rate_metrics import rate


def recall_by_domain(faults: pd.DataFrame, level: float = LEVEL) -> list[Metric]:
    """Share of faults found (cause and place) in each domain that has any: `recall_in_<domain>`.

    Args:
        faults: The table of faults, its column `group` categorical.
        level: Coverage of the intervals.
    """
    grouped = faults.groupby("domain")
    return [rate(f"recall_in_{name}", FOUND, own, level) for name, own in grouped]
