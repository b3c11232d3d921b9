"""Metrics that are a function of per-case columns summed over all cases.

A new one is one line in STATISTICS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scorers.intervals import LEVEL, Array, informing
from scorers.levels import LEVELS
from scorers.metric import NO_CASE, NO_FINDING, PREVALENCE, Metric
from scorers.sums import statistic_bounds


@dataclass(frozen=True)
class Summed:
    """A function of the sums of per-case columns.

    `needs` maps columns whose sum must be positive to the note where it is not; the units of
    the metric are those of the columns together. `low` and `high` bound its range.
    """

    columns: tuple[str, ...]
    statistic: Callable[[Array], Array]
    needs: dict[str, str]
    low: float = 0.0
    high: float = 1.0


def ratio(sums: Array) -> Array:
    """First column over the second."""
    result: Array = sums[..., 0] / sums[..., 1]
    return result


def at_reference(sums: Array) -> Array:
    """Mean of a value at the reference prevalence: its three sums, then the three counts."""
    weights = np.array(list(PREVALENCE.values()))
    result: Array = (weights * sums[..., :3] / sums[..., 3:]).sum(axis=-1)
    return result


def precision_at_reference(sums: Array) -> Array:
    """Precision at the reference prevalence: true, then false and number of cases by verdict."""
    true = PREVALENCE["faulty"] * sums[..., 0] / sums[..., 4]
    false = at_reference(sums[..., 1:])
    result: Array = true / (true + false)
    return result


def by_verdict(column: str) -> tuple[str, ...]:
    """Name the columns that hold `column` where a case has each verdict, and 0 elsewhere."""
    return tuple(f"{column}@{verdict}" for verdict in PREVALENCE)


COUNTS = by_verdict("one")
ALL_VERDICTS = {f"one@{verdict}": note for verdict, note in NO_CASE.items()}
HAS_FAULTS = {"n_faults": NO_CASE["faulty"]}

STATISTICS: dict[str, Summed] = {
    **{
        f"precision_{x}_reference": Summed(
            (f"true_{x}", *by_verdict(f"false_{x}"), *COUNTS),
            precision_at_reference,
            ALL_VERDICTS,
        )
        for x in LEVELS
    },
    "lost_fraction_error": Summed(("lost_error", "n_faults"), ratio, HAS_FAULTS),
    "lost_fraction_error_floor": Summed(("lost_floor", "n_faults"), ratio, HAS_FAULTS),
    "brier": Summed(("brier", "one"), ratio, {"one": "no case"}, high=np.inf),
}


def summed(name: str, rule: Summed, cases: pd.DataFrame, seed: int, level: float = LEVEL) -> Metric:
    """Compute one function of sums with its interval over groups.

    Args:
        name: Name of the metric.
        rule: Which function of which sums it is.
        cases: The table of cases with all columns of the rule.
        seed: Seed of the bootstrap.
        level: Coverage of the interval.
    """
    for column, note in rule.needs.items():
        if cases.empty or cases[column].sum() <= 0:
            return Metric.undefined(name, note)
    by_group = cases.groupby("group", sort=True, observed=True)
    sums = by_group[list(rule.columns)].sum().to_numpy(dtype=np.float64)
    units = by_group[list(rule.needs)].sum().to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(rule.statistic(sums.sum(axis=0)))
    if np.isnan(value):
        return Metric.undefined(name, NO_FINDING)
    bounds = statistic_bounds(sums, rule.statistic, units=units, seed=seed, level=level)
    # The scarcest kind of case decides how much the groups can tell.
    n, groups = int(units.sum()), informing(units)
    return Metric.bounded(name, value, bounds.within(rule.low, rule.high), n, groups)
