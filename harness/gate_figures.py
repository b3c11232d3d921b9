"""The metrics that thresholds are held against: over part of the cases, at any level."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pandas as pd

from harness.policy import Part, Threshold
from scorers import Metric
from scorers.benefit_metrics import net_benefits
from scorers.prepared import prepare
from scorers.rate_metrics import RATES, rate
from scorers.scores import figures
from scorers.severity import bands
from scorers.tables import Tables

BENEFIT = "net_benefit_"
ELSEWHERE = "too few of its groups are among these cases"


@dataclass(frozen=True)
class Selection:
    """Which cases, and which of their faults; all where nothing is named."""

    split: Part = "all"
    domain: str | None = None
    cause: str | None = None
    severity: str | None = None

    @classmethod
    def of(cls, rule: Threshold, split: Part) -> Selection:
        """Return what a threshold looks at, given the policy's split."""
        return cls(rule.split or split, rule.domain, rule.cause, rule.severity)

    def apply(self, tables: Tables) -> Tables:
        """Return the rows of the selected cases.

        If faults are selected, the cases that have one of them, all findings on these cases, and
        only the selected faults.
        """
        part = in_split(tables, self.split)
        faults = part.faults
        if self.domain is not None:
            faults = faults.loc[faults["domain"] == self.domain]
        if self.cause is not None:
            faults = faults.loc[faults["cause"] == self.cause]
        if self.severity is not None:
            faults = faults.loc[bands(faults["lost_fraction"]) == self.severity]
        if (self.domain, self.cause, self.severity) == (None, None, None):
            return part
        ids = set(faults["case_id"])
        kept = [frame.loc[frame["case_id"].isin(ids)] for frame in (part.cases, part.findings)]
        return Tables(kept[0], faults, kept[1])


class Figures:
    """Metrics of one result, computed when a rule asks for them.

    Args:
        tables: All outcomes of the result.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._all = lru_cache(maxsize=None)(self._compute)
        self._ready = lru_cache(maxsize=None)(self._prepare)

    def metric(self, name: str, selection: Selection, level: float) -> Metric:
        """Return one metric over the selected cases with its interval at `level`."""
        ready = self._ready(selection)
        if ready is None:
            return Metric.undefined(name, "no such case")
        if name in RATES:
            rule = RATES[name]
            return rate(name, rule, getattr(ready, rule.table), level)
        if name.startswith(BENEFIT) and not name.endswith("_applicable"):
            found = {metric.name: metric for metric in net_benefits(ready.cases, level)}
        else:
            found = self._all(selection, level)
        return found.get(name) or Metric.undefined(name, ELSEWHERE)

    def _compute(self, selection: Selection, level: float) -> dict[str, Metric]:
        return figures(selection.apply(self._tables), self._floor, level=level)

    def _prepare(self, selection: Selection) -> Tables | None:
        selected = selection.apply(self._tables)
        return None if selected.cases.empty else prepare(selected, self._floor)

    @cached_property
    def _floor(self) -> float | None:
        faults = self._tables.faults
        train = faults.loc[faults["split"] == "train", "lost_fraction"]
        return statistics.median(train) if len(train) else None


def in_split(tables: Tables, split: Part) -> Tables:
    """Return the rows of one split's cases."""
    if split == "all":
        return tables
    return Tables(*(_of(frame, split) for frame in (tables.cases, tables.faults, tables.findings)))


def _of(frame: pd.DataFrame, split: str) -> pd.DataFrame:
    return frame.loc[frame["split"] == split]
