"""Ranks' metrics of this run and of the reference, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from cases.case import Case, Recording
from harness.diagnosers.features.arrays import MOST, Columns, Floats, reduced
from harness.diagnosers.features.collectives import collective_metrics, lateness_metrics
from harness.diagnosers.features.devices import device_metrics
from harness.diagnosers.features.events import event_metrics
from harness.diagnosers.features.hosts import host_metrics, network_metrics, process_metrics
from harness.diagnosers.features.loaders import loader_metrics
from harness.diagnosers.features.metrics import METRICS
from harness.diagnosers.features.steps import mean_step_ns, step_count, step_metrics


class Measured:
    """Ranks' metrics of one run, in their units; a table is read when one of its own is asked for.

    Args:
        run: The run.
        case: The case that it belongs to.
    """

    def __init__(self, run: Recording, case: Case) -> None:
        self.run = run
        self.hosts = {place.rank: place.host for place in case.info.topology.ranks}
        self.ranks = tuple(self.hosts)
        self._known: dict[str, Columns] = {}

    def __getitem__(self, name: str) -> Floats:
        """One metric, a number a rank; NaN where it is not known."""
        source = "lateness" if name.startswith("asked_late") else METRICS[name].table
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing to divide by: not known
            if name in DERIVED:
                return DERIVED[name](self)
            if source not in self._known:
                self._known[source] = SOURCES[source](self)
        unknown = np.full(len(self.ranks), np.nan)
        return self._known[source].get(name, unknown)

    @cached_property
    def step_ns(self) -> float:
        """Mean step in ns."""
        return mean_step_ns(self.run)

    @cached_property
    def steps(self) -> int:
        """How many steps were recorded."""
        return step_count(self.run)


SOURCES: dict[str, Callable[[Measured], Columns]] = {
    "steps": lambda m: step_metrics(m.run, m.ranks),
    "collectives": lambda m: collective_metrics(m.run, m.ranks, m.steps),
    "lateness": lambda m: lateness_metrics(m.run, m.ranks, m.steps),
    "gpu": lambda m: device_metrics(m.run, m.ranks, m.step_ns),
    "processes": lambda m: process_metrics(m.run, m.ranks, m.step_ns),
    "host": lambda m: host_metrics(m.run, m.ranks, m.hosts),
    "network": lambda m: network_metrics(m.run, m.ranks, m.steps),
    "loader": lambda m: loader_metrics(m.run, m.ranks),
    "runtime": lambda m: event_metrics(m.run, m.ranks, m.steps),
}
DERIVED: dict[str, Callable[[Measured], Floats]] = {
    "own": lambda m: m["duration"] - np.nan_to_num(m["joined"]),
    "computing": lambda m: m["forward"] + m["backward"],
    "expert_share": lambda m: _shares(m["expert_tokens"]),
    "embedding_share": lambda m: _shares(m["embedding_rows"]),
    "length_share": lambda m: _shares(m["length_squares"]),
    "padded": lambda m: m["tokens"] / m["length_sum"],
}


def _shares(values: Floats) -> Floats:
    """Values of ranks over their mean."""
    return np.asarray(values / reduced(values, np.mean))


class Compared:
    """Ranks' metrics in this run and what became of them since the reference run."""

    def __init__(self, case: Case) -> None:
        self._here = Measured(case, case)
        self._there = Measured(case.reference, case) if case.reference else None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that the numbers are of, in their order."""
        return self._here.ranks

    @property
    def slowdown(self) -> float:
        """Mean step over that of the reference; NaN without one."""
        return self._here.step_ns / self._there.step_ns if self._there else float("nan")

    def now(self, name: str) -> Floats:
        """A metric in this run, a number a rank; times as shares of its own mean step."""
        values = self._here[name]
        return values / self._here.step_ns if METRICS[name].unit == "step" else values

    def change(self, name: str) -> Floats:
        """Change from the reference run by the metric's unit; NaN without a reference."""
        if self._there is None:
            return np.full(len(self._here.ranks), np.nan)
        now, then = self._here[name], self._there[name]
        if METRICS[name].unit == "ratio":
            return _quotient(now, then)
        return (now - then) / self._there.step_ns if METRICS[name].unit == "step" else now - then


def _quotient(now: Floats, then: Floats) -> Floats:
    """Ratios of what is not negative; 1 where both are 0, `MOST` where only `then` is."""
    known = np.where(then > 0, now / np.where(then > 0, then, 1.0), np.where(now > 0, MOST, 1.0))
    return np.where(np.isnan(now) | np.isnan(then), np.nan, np.minimum(known, MOST))
