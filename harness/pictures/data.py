"""What the pictures of one result show, as tables, from the tables of its outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cases.errors import InputError
from scorers import Scores
from scorers.confusion import confusion_table
from scorers.rates import rate_bounds
from scorers.reliability import BINS, reliability
from scorers.selective import risk_coverage
from scorers.tables import Tables

OUTCOMES, FAULTS, FINDINGS = "outcomes.parquet", "faults.parquet", "findings.parquet"
MIN_FAULTS_PER_BIN, MOST_BINS = 10, 8
RIGHT = "right_cause_and_locus"


def confusion(scores: Scores) -> pd.DataFrame:
    """True cause x blamed cause; where nothing was blamed, the bucket stands in brackets.

    Returns:
        Columns true, blamed, kind, count; healthy and undecidable cases are rows too.
    """
    faults = scores.confusion.assign(
        blamed=scores.confusion["blamed"].where(
            scores.confusion["blamed"] != "", "(" + scores.confusion["kind"].astype(str) + ")"
        )
    )
    cases = scores.cases
    quiet = cases.loc[(cases["verdict"] != "faulty") & ~cases["misled"].astype(bool)]
    counted = quiet.groupby(["verdict", "bucket"]).size().reset_index(name="count")
    silent = pd.DataFrame(
        {
            "true": counted["verdict"],
            "blamed": "(" + counted["bucket"].astype(str) + ")",
            "kind": counted["bucket"],
            "count": counted["count"],
        }
    )
    return pd.concat([faults, silent], ignore_index=True)


def calibration(scores: Scores) -> pd.DataFrame:
    """Findings by tenths of confidence, with how often those were right.

    Returns:
        The columns of `scorers.reliability`, and low and high bounds of `right` over groups.
    """
    rows = scores.findings.loc[scores.findings[RIGHT].notna()]
    confidences, right = (rows[name].to_numpy(np.float64) for name in ("confidence", RIGHT))
    table = reliability(confidences, right)
    tenths = np.minimum((confidences * BINS).astype(int), BINS - 1)
    own = [tenths == round(low * BINS) for low in table["low"]]
    return table.join(_bounds([(right[tenth], rows.loc[tenth, "group"]) for tenth in own]))


def coverage(scores: Scores) -> pd.DataFrame:
    """The generalised risk-coverage curve: see `scorers.selective.risk_coverage`."""
    return risk_coverage(scores.cases)


def recall_by_cost(scores: Scores) -> pd.DataFrame:
    """Recall (cause and place) of faults that cost alike: bins with as many faults each.

    Returns:
        Columns cost (median lost fraction of wall time), low_cost, high_cost, faults, recall, and
        its low and high bounds over groups; the cheapest first.
    """
    faults = scores.faults.sort_values("lost_fraction", kind="stable")
    count = min(MOST_BINS, max(1, len(faults) // MIN_FAULTS_PER_BIN))
    bins = [part for part in np.array_split(np.arange(len(faults)), count) if len(part)]
    rows, values = [], []
    for places in bins:
        own = faults.iloc[places]
        cost, right = own["lost_fraction"], own[RIGHT].to_numpy(np.float64)
        rows.append((cost.median(), cost.min(), cost.max(), len(own), right.mean()))
        values.append((right, own["group"]))
    columns = ["cost", "low_cost", "high_cost", "faults", "recall"]
    return pd.DataFrame(rows, columns=columns).join(_bounds(values))


TABLES: dict[str, Callable[[Scores], pd.DataFrame]] = {
    "confusion": confusion,
    "reliability": calibration,
    "risk_coverage": coverage,
    "recall_by_cost": recall_by_cost,
}


def stored_scores(results: Path) -> Scores:
    """Read the outcomes of a judged results folder back; its figures are left out.

    Raises:
        InputError: a table is missing.
    """
    cases, faults, findings = (_read(results / name) for name in (OUTCOMES, FAULTS, FINDINGS))
    counted = confusion_table(Tables(cases, faults, findings))
    return Scores(cases, faults, findings, counted, {})


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        must = f"must be a table (`evalharness score RESULTS` writes it): {error}"
        raise InputError(must, where=path) from None


def _bounds(values: list[tuple[Any, pd.Series[str]]]) -> pd.DataFrame:
    """Return right_low and right_high of rates, None where there are too few groups."""
    found = [
        rate_bounds(right, np.unique(groups.to_numpy(str), return_inverse=True)[1])
        for right, groups in values
    ]
    columns = {"right_low": [b.low for b in found], "right_high": [b.high for b in found]}
    return pd.DataFrame(columns, dtype=object)
