"""Net benefit over all cases: in the suite's own mix, and at the reference prevalence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cases.schema import Verdict
from scorers.benefit import NAMES, WEIGHTS
from scorers.combined import Part, combined_bounds
from scorers.metric import NO_CASE, PREVALENCE, Metric
from scorers.rate_metrics import codes

# (coefficient, column, verdict of the cases that count)
Terms = Sequence[tuple[float, str, str | None]]


def own_terms(weight: float, name: str) -> Terms:
    """Return what net benefit is the sum of: shares found less w times cases misled."""
    return [(1.0, f"acted_found_{name}", None), (-weight, f"acted_misled_{name}", None)]


def reference_terms(weight: float, name: str) -> Terms:
    """Return the same at the reference prevalence."""
    found = [(PREVALENCE["faulty"], f"acted_found_{name}", "faulty")]
    misled = [
        (-weight * share, f"acted_misled_{name}", verdict) for verdict, share in PREVALENCE.items()
    ]
    return [*found, *misled]


def net_benefits(cases: pd.DataFrame) -> list[Metric]:
    """Compute `net_benefit_<w>` and `net_benefit_<w>_reference` for every weight.

    Args:
        cases: The table of cases, its column `group` categorical.
    """
    found = []
    for weight, name in zip(WEIGHTS, NAMES, strict=True):
        metric = f"net_benefit_{name}"
        found.append(_combined(metric, own_terms(weight, name), cases))
        found.append(_combined(f"{metric}_reference", reference_terms(weight, name), cases))
    return found


def _combined(name: str, terms: Terms, cases: pd.DataFrame) -> Metric:
    subsets: dict[Verdict | str | None, pd.DataFrame] = {}
    for _, _, verdict in terms:
        rows = cases if verdict is None else cases.loc[cases["verdict"] == verdict]
        if rows.empty:
            return Metric.undefined(name, NO_CASE.get(verdict or "", "no case"))
        subsets[verdict] = rows
    parts = [
        Part(coefficient, subsets[verdict][column].to_numpy(np.float64), codes(subsets[verdict]))
        for coefficient, column, verdict in terms
    ]
    value = sum(part.coefficient * part.rate for part in parts)
    bounds = combined_bounds(parts, len(cases["group"].cat.categories))
    n = sum(len(rows) for rows in subsets.values())
    # The scarcest kind of case decides how much the groups can tell.
    groups = min(rows["group"].nunique() for rows in subsets.values())
    return Metric.bounded(name, value, bounds, n, groups)
