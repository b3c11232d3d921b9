"""The tables of outcomes with the columns that only metrics need."""

from __future__ import annotations

import pandas as pd

from scorers.metric import PREVALENCE
from scorers.sum_metrics import STATISTICS
from scorers.tables import Tables


def prepare(tables: Tables, train_median_lost_fraction: float | None) -> Tables:
    """Add the columns of RATES and STATISTICS, and number the groups alike in all tables."""
    faults = tables.faults.assign(misattributed=tables.faults["bucket"] == "misattributed")
    cases = _split(_cases(tables.cases, faults, train_median_lost_fraction or 0.0))
    names = pd.CategoricalDtype(sorted(tables.cases["group"].unique()))

    def numbered(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(group=frame["group"].astype(names))

    return Tables(numbered(cases), numbered(faults), numbered(tables.findings))


def _cases(cases: pd.DataFrame, faults: pd.DataFrame, floor: float) -> pd.DataFrame:
    lost = faults["lost_fraction"]
    return cases.assign(
        one=1.0,
        informed=cases["bucket"] == "abstained_informed",
        abstained=~cases["answered"] & (cases["outcome"] == "ok"),
        failed=~cases["outcome"].isin(("unsupported", "ok")),
        unsupported=cases["outcome"] == "unsupported",
        lost_error=_per_case(faults, (lost - faults["predicted_lost_fraction"]).abs(), cases),
        lost_floor=_per_case(faults, (lost - floor).abs(), cases),
    )


def _split(cases: pd.DataFrame) -> pd.DataFrame:
    """Add each `<column>@<verdict>` that a statistic asks for: 0 for cases of other verdicts."""
    wanted = {name for rule in STATISTICS.values() for name in (*rule.columns, *rule.needs)}
    of = {verdict: cases["verdict"] == verdict for verdict in PREVALENCE}
    split = {
        name: cases[name.partition("@")[0]].where(of[name.partition("@")[2]], 0.0)
        for name in sorted(wanted)
        if "@" in name
    }
    return cases.assign(**split)


def _per_case(
    faults: pd.DataFrame, values: pd.Series[float], cases: pd.DataFrame
) -> pd.Series[float]:
    """Sum a value of the faults over each case, 0 for a case without faults."""
    sums = values.groupby(faults["case_id"]).sum()
    return cases["case_id"].map(sums).fillna(0.0).astype(float)
