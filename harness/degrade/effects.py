"""What a change of the recordings does to a diagnoser: paired differences, with intervals.

The same cases are judged twice. A difference of two rates is what was gained less what was lost,
and these two are rates with Wilson intervals of their own: where few groups show any change, an
interval from the spread of the differences alone would be far too sure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from scorers import Metric, Scores
from scorers.combined import Part, combined_bounds
from scorers.intervals import Array
from scorers.metric import PREVALENCE

RECALL = "right_cause_and_locus"
BENEFIT_WEIGHT = 1.0


def recall(first: Scores, second: Scores) -> Metric:
    """Faults found (cause and place) by the first less those found by the second."""
    return difference("recall", first.faults, second.faults, RECALL)


def misled_avoided(first: Scores, second: Scores) -> Metric:
    """Share of cases with a false finding: second less first, so that more is better."""
    return difference("misled_avoided", second.cases, first.cases, "misled")


def net_benefit(first: Scores, second: Scores) -> Metric:
    """Net benefit at w = 1, in the reference mix of the verdicts that there are."""
    one, other = first.cases, second.cases
    present = {v: share for v, share in PREVALENCE.items() if (one["verdict"] == v).any()}
    parts = []
    for verdict, share in present.items():
        rows = (one["verdict"] == verdict).to_numpy(bool)
        for column, worth in (("acted_found_w1", 1.0), ("acted_misled_w1", -BENEFIT_WEIGHT)):
            weight = worth * share / sum(present.values())
            parts += _parts(one.loc[rows], other.loc[rows], column, weight)
    return _metric("net_benefit", parts, one["group"], len(one))


# By how much the first is better than the second.
EFFECTS: dict[str, Callable[[Scores, Scores], Metric]] = {
    "recall": recall,
    "misled_avoided": misled_avoided,
    "net_benefit": net_benefit,
}


def by_cause(first: Scores, second: Scores) -> dict[str, Metric]:
    """Return the difference in recall for each cause that there is a fault of."""
    one, other = first.faults, second.faults
    return {
        str(cause): difference(str(cause), one.loc[rows.index], other.loc[rows.index], RECALL)
        for cause, rows in one.groupby("cause")
    }


def difference(name: str, first: pd.DataFrame, second: pd.DataFrame, column: str) -> Metric:
    """Mean of a column over rows of the first less that over the same rows of the second.

    Args:
        name: Name of the figure.
        first, second: Rows of one table of outcomes, in the same order; values within 0..1.
        column: The column, next to `group`.
    """
    return _metric(name, _parts(first, second, column, 1.0), first["group"], len(first))


def _parts(
    first: pd.DataFrame, second: pd.DataFrame, column: str, weight: float
) -> list[tuple[float, Array, pd.Series[str]]]:
    """Return (coefficient, values, groups) of what is gained and of what is lost."""
    apart = first[column].to_numpy(np.float64) - second[column].to_numpy(np.float64)
    gained, lost = np.maximum(apart, 0.0), np.maximum(-apart, 0.0)
    return [(weight, gained, first["group"]), (-weight, lost, first["group"])]


def _metric(
    name: str,
    parts: list[tuple[float, Array, pd.Series[str]]],
    groups: pd.Series[str],
    n: int,
) -> Metric:
    if not n:
        return Metric.undefined(name, "no case")
    names = sorted(groups.unique())
    numbers = {group: number for number, group in enumerate(names)}
    numbered = [
        Part(weight, values, own.map(numbers).to_numpy(np.intp)) for weight, values, own in parts
    ]
    bounds = combined_bounds(numbered, len(names))
    value = sum(part.coefficient * part.rate for part in numbered)
    # An empty sum of rounding errors must not read -0.00.
    return Metric.bounded(name, round(value, 12) + 0.0, bounds, n, len(names))
