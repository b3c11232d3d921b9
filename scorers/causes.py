"""Recall of each cause that enough groups have; the scarce ones pooled by domain."""

from __future__ import annotations

import pandas as pd

from scorers.metrics import Metric, Rate, rate

MIN_GROUPS_PER_CAUSE = 5
FOUND = Rate("faults", "right_cause_and_locus")


def recall_by_cause(faults: pd.DataFrame) -> list[Metric]:
    """Share of faults found (cause and place) per cause with at least 5 groups.

    Returns:
        `recall_of_<cause>`, and `recall_of_other_<domain>` for the rest of a domain.
    """
    groups = faults.groupby("cause")["group"].transform("nunique")
    scarce = "other_" + faults["domain"].astype(str)
    names = faults["cause"].where(groups >= MIN_GROUPS_PER_CAUSE, scarce)
    return [rate(f"recall_of_{name}", FOUND, own) for name, own in faults.groupby(names)]
