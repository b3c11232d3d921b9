"""The table of metrics: what each is the mean of, or which function of which sums.

A new metric is one line in RATES (a mean of values within 0..1 over rows of one table) or in
STATISTICS (a function of per-case columns summed over all cases).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cases.schema import Verdict
from scorers.benefit import WEIGHTS
from scorers.intervals import Array, Bounds, rate_bounds, statistic_bounds
from scorers.levels import LEVELS
from scorers.tables import Tables

PREVALENCE: dict[str, float] = {"faulty": 0.2, "healthy": 0.7, "undecidable": 0.1}
NO_CASE = {verdict: f"no {verdict} case" for verdict in PREVALENCE}
NO_FINDING = "no finding was made"


@dataclass(frozen=True)
class Metric:
    """A figure with its 95 % interval; None where it is undefined, and `note` says why.

    `n` counts the units it is over, `groups` the groups that they come from.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    groups: int
    note: str | None = None


@dataclass(frozen=True)
class Rate:
    """The mean of one column of one table; rows whose value is missing do not count."""

    table: Literal["cases", "faults", "findings"]
    column: str
    verdict: Verdict | None = None
    empty: str = "no case"


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
    "window_iou": Rate("faults", "window_iou", empty="no fault has windows"),
    **{f"recall_{x}": Rate("faults", f"right_{x}", empty=NO_CASE["faulty"]) for x in LEVELS},
    **{f"precision_{x}": Rate("findings", f"right_{x}", empty=NO_FINDING) for x in LEVELS},
}


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


def f1(sums: Array) -> Array:
    """2PR/(P+R) of true and false findings, found faults and faults; 0 where P + R is 0."""
    true, false, found, faults = np.moveaxis(sums, -1, 0)
    numerator = 2 * true * found
    denominator = true * faults + found * (true + false)
    zero = np.zeros_like(numerator)
    result: Array = np.divide(numerator, denominator, out=zero, where=denominator != 0)
    return result


def _by_verdict(column: str) -> tuple[str, ...]:
    return tuple(f"{column}@{verdict}" for verdict in PREVALENCE)


COUNTS = _by_verdict("one")
ALL_VERDICTS = {f"one@{verdict}": note for verdict, note in NO_CASE.items()}
WHOLE = {"one": "no case"}
HAS_FAULTS = {"n_faults": NO_CASE["faulty"]}

STATISTICS: dict[str, Summed] = {
    "mrr": Summed(("mrr@faulty", "one@faulty"), ratio, {"one@faulty": NO_CASE["faulty"]}),
    **{
        f"f1_{x}": Summed((f"true_{x}", f"false_{x}", f"found_{x}", "n_faults"), f1, HAS_FAULTS)
        for x in LEVELS
    },
    **{
        f"net_benefit_w{w:g}": Summed((f"net_benefit_w{w:g}", "one"), ratio, WHOLE, low=-w)
        for w in WEIGHTS
    },
    **{
        f"net_benefit_w{w:g}_reference": Summed(
            (*_by_verdict(f"net_benefit_w{w:g}"), *COUNTS), at_reference, ALL_VERDICTS, low=-w
        )
        for w in WEIGHTS
    },
    **{
        f"precision_{x}_reference": Summed(
            (f"true_{x}", *_by_verdict(f"false_{x}"), *COUNTS),
            precision_at_reference,
            ALL_VERDICTS,
        )
        for x in LEVELS
    },
    "misattributed_time": Summed(("lost_misattributed", "lost"), ratio, HAS_FAULTS),
    "lost_fraction_error": Summed(("lost_error", "n_faults"), ratio, HAS_FAULTS),
    "lost_fraction_error_floor": Summed(("lost_floor", "n_faults"), ratio, HAS_FAULTS),
}


def compute(tables: Tables, *, train_median_lost_fraction: float | None, seed: int) -> list[Metric]:
    """Compute every metric of RATES and STATISTICS, each with its interval."""
    cases = _with_columns(tables, train_median_lost_fraction)
    frames = {"cases": cases, "faults": tables.faults, "findings": tables.findings}
    found = [rate(name, rule, frames[rule.table]) for name, rule in RATES.items()]
    for name, rule in STATISTICS.items():
        if name == "lost_fraction_error_floor" and train_median_lost_fraction is None:
            note = "no median of a train split was given"
            found.append(Metric(name, None, None, None, 0, 0, note))
        else:
            found.append(summed(name, rule, cases, seed))
    return found


def rate(name: str, rule: Rate, frame: pd.DataFrame) -> Metric:
    """Compute one rate with Wilson's interval."""
    rows = frame if rule.verdict is None else frame.loc[frame["verdict"] == rule.verdict]
    rows = rows.loc[rows[rule.column].notna()]
    if rows.empty:
        return Metric(name, None, None, None, 0, 0, rule.empty)
    values = rows[rule.column].to_numpy(dtype=np.float64)
    groups = pd.factorize(rows["group"], sort=True)[0]
    bounds = rate_bounds(values, groups)
    return _metric(name, float(values.mean()), bounds, len(values), int(groups.max()) + 1)


def summed(name: str, rule: Summed, cases: pd.DataFrame, seed: int) -> Metric:
    """Compute one function of sums with its interval over groups."""
    for column, note in rule.needs.items():
        if cases.empty or cases[column].sum() <= 0:
            return Metric(name, None, None, None, 0, 0, note)
    by_group = cases.groupby("group", sort=True)
    sums = by_group[list(rule.columns)].sum().to_numpy(dtype=np.float64)
    units = by_group[list(rule.needs)].sum()
    # The scarcest kind of case decides how much the groups can tell.
    groups = int((units > 0).sum().min())
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(rule.statistic(sums.sum(axis=0)))
    if np.isnan(value):
        return Metric(name, None, None, None, 0, 0, NO_FINDING)
    bounds = statistic_bounds(sums, rule.statistic, groups=groups, seed=seed)
    return _metric(name, value, _clipped(bounds, rule), int(units.to_numpy().sum()), groups)


def _clipped(bounds: Bounds, rule: Summed) -> Bounds:
    if bounds.low is None or bounds.high is None:
        return bounds
    return Bounds(max(bounds.low, rule.low), min(bounds.high, rule.high))


def _metric(name: str, value: float, bounds: Bounds, n: int, groups: int) -> Metric:
    return Metric(name, value, bounds.low, bounds.high, n, groups, bounds.note)


def _with_columns(tables: Tables, floor: float | None) -> pd.DataFrame:
    """Add the columns of the table of cases that only metrics need."""
    cases, faults = tables.cases, tables.faults
    lost, misattributed = faults["lost_fraction"], faults["bucket"] == "misattributed"
    frame = cases.assign(
        one=1.0,
        informed=cases["bucket"] == "abstained_informed",
        abstained=~cases["answered"] & (cases["outcome"] == "ok"),
        failed=~cases["outcome"].isin(("unsupported", "ok")),
        unsupported=cases["outcome"] == "unsupported",
        lost=_per_case(faults, lost, cases),
        lost_misattributed=_per_case(faults, lost.where(misattributed, 0.0), cases),
        lost_error=_per_case(faults, (lost - faults["predicted_lost_fraction"]).abs(), cases),
        lost_floor=_per_case(faults, (lost - (floor or 0.0)).abs(), cases),
    )
    split = {
        name: frame[name.partition("@")[0]].where(frame["verdict"] == name.partition("@")[2], 0.0)
        for rule in STATISTICS.values()
        for name in (*rule.columns, *rule.needs)
        if "@" in name
    }
    return frame.assign(**split)


def _per_case(
    faults: pd.DataFrame, values: pd.Series[float], cases: pd.DataFrame
) -> pd.Series[float]:
    """Sum a value of the faults over each case, 0 for a case without faults."""
    sums = values.groupby(faults["case_id"]).sum()
    return cases["case_id"].map(sums).fillna(0.0).astype(float)
