"""Figures of each cause that enough groups have; the scarce ones pooled by domain."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from scorers.detectable import NAME, enough, minimum_detectable
from scorers.f1 import f1
from scorers.intervals import LEVEL
from scorers.metric import NO_FINDING, Metric
from scorers.rate_metrics import Rate, rate

MIN_GROUPS_PER_CAUSE = 5
FOUND = Rate("faults", "right_cause_and_locus")
TRUE = Rate("findings", "right_cause_and_locus", empty=NO_FINDING)


def by_cause(
    faults: pd.DataFrame, findings: pd.DataFrame, level: float = LEVEL
) -> Iterator[Metric]:
    """Yield recall, precision and F1 (cause and place) per cause with at least 5 groups.

    `<metric>_of_<cause>`, and `<metric>_of_other_<domain>` for the rest of a domain; of the
    former also the minimum detectable cost where there are faults enough. Precision is over
    the findings that blame the cause, or another name of the domain.

    Args:
        faults: The table of faults, its column `group` categorical.
        findings: The table of findings, likewise.
        level: Coverage of the intervals.
    """
    groups = faults.groupby("cause")["group"].nunique()
    known = set(groups.index[groups >= MIN_GROUPS_PER_CAUSE])
    blamed = dict(list(findings.groupby(_names(findings, known))))
    for name, own in faults.groupby(_names(faults, known)):
        recall = rate(f"recall_of_{name}", FOUND, own, level)
        precision = rate(f"precision_of_{name}", TRUE, blamed.get(name, findings.iloc[:0]), level)
        yield from (recall, precision, f1(f"f1_of_{name}", precision, recall))
        if name in known and enough(own):
            yield minimum_detectable(own, f"{NAME}_of_{name}", level)


def _names(rows: pd.DataFrame, known: set[str]) -> pd.Series[str]:
    """Name each row by its cause if that is known, else by its domain."""
    return rows["cause"].where(rows["cause"].isin(known), "other_" + rows["domain"].astype(str))
