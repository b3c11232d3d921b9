"""Net benefit over all cases: in the suite's own mix, and at the reference prevalence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from scorers.benefit import NAMES, WEIGHTS
from scorers.combined import Part, combined_bounds
from scorers.intervals import LEVEL, count_groups
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


def net_benefits(cases: pd.DataFrame, level: float = LEVEL) -> list[Metric]:
    """Compute `net_benefit_<w>` and `net_benefit_<w>_reference` for every weight.

    Args:
        cases: The table of cases, its column `group` categorical.
        level: Coverage of the intervals.
    """
    found = []
    for weight, name in zip(WEIGHTS, NAMES, strict=True):
        metric = f"net_benefit_{name}"
        found.append(_combined(metric, own_terms(weight, name), cases, level))
        terms = reference_terms(weight, name)
        found.append(_combined(f"{metric}_reference", terms, cases, level))
    return found


def _combined(name: str, terms: Terms, cases: pd.DataFrame, level: float) -> Metric:
    groups = codes(cases)
    rows = {verdict: _rows(cases, verdict) for _, _, verdict in terms}
    for verdict, kept in rows.items():
        if not kept.any():
            return Metric.undefined(name, NO_CASE.get(verdict or "", "no case"))
    parts = [
        Part(coefficient, cases[column].to_numpy(np.float64)[rows[verdict]], groups[rows[verdict]])
        for coefficient, column, verdict in terms
    ]
    value = sum(part.coefficient * part.rate for part in parts)
    bounds = combined_bounds(parts, len(cases["group"].cat.categories), level)
    n = sum(int(kept.sum()) for kept in rows.values())
    # The scarcest kind of case decides how much the groups can tell.
    count = min(count_groups(groups[kept]) for kept in rows.values())
    return Metric.bounded(name, value, bounds, n, count)


def _rows(cases: pd.DataFrame, verdict: str | None) -> npt.NDArray[np.bool_]:
    """Say which cases have a verdict, all if it is None."""
    if verdict is None:
        return np.ones(len(cases), dtype=bool)
    return np.asarray(cases["verdict"] == verdict, dtype=bool)
