"""Simulated against recorded slow-downs: the same scenarios, the same injections.

    rows = [*comparisons(Suite.open(folder), labels)]
    print(by_cause(rows))

makes the table of docs/simulator.md, from the cases with one fault of a suite that was recorded on
CPU cores. Each group of cases has a twin whose speeds are calibrated by one healthy recording. The
slow-down that a label measured is compared with the twin's, both as mean step times with the fault
over those without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import pandas as pd

from cases.bundle import Suite
from cases.case import Recording
from cases.errors import InputError
from cases.truth import Truth, Validation, read_truth
from injectors.scenario import Scenario
from injectors.sim.calibration import calibrated, twin_job
from injectors.sim.recording import compiled
from injectors.sim.run import seconds
from injectors.sim.twin import Speeds
from injectors.sim.workloads.cpu.injected import perturb

LOW, HIGH = 0.75, 1.33  # of simulated over real slow-downs that agree
SEED, STEPS = 1, 60
LEAST_ROWS = 20
PHASES = ["duration_ns", "data_wait_ns", "forward_ns"]
TABLES = ("steps", "loader", "collectives")


@dataclass(frozen=True)
class Comparison:
    """One arm of one group: how much slower the fault made the real job and its twin.

    Attributes:
        real, simulated: Mean step time with the fault over that without it.
        healthy: Step time of the healthy twin over the recorded one that calibrated it.
    """

    group: str
    arm: str
    cause: str
    ranks: int
    real: float
    simulated: float
    healthy: float

    @property
    def agreement(self) -> float:
        """Simulated over real slow-down."""
        return self.simulated / self.real

    @property
    def agrees(self) -> bool:
        """Whether both are slower, and by about as much."""
        return self.simulated > 1 and LOW <= self.agreement <= HIGH


def comparisons(
    suite: Suite, labels: Path, groups: Iterable[str] | None = None
) -> Iterator[Comparison]:
    """Simulate every arm with one fault that the suite ships a case of, once each.

    Args:
        suite: Recorded on CPU cores.
        labels: Its labels.
        groups: Names of groups; all by default.

    Yields:
        A comparison for each arm of training jobs. Groups of which no healthy recording tells
        the phases of steps are left out.
    """
    truths = [read_truth(labels, case_id) for case_id in suite.case_ids]
    wanted = None if groups is None else set(groups)
    twins = _Twins(suite, truths)
    seen: set[tuple[str, str]] = set()
    for truth in truths:
        place = truth.group, str(truth.recipe["case"]["arm"])
        if len(truth.faults) != 1 or place in seen or (wanted and truth.group not in wanted):
            continue
        seen.add(place)
        if (found := twins.compare(truth)) is not None:
            yield found


class _Twins:
    """Healthy twins of groups, calibrated once each."""

    def __init__(self, suite: Suite, truths: Iterable[Truth]) -> None:
        self._suite = suite
        self._truths: dict[str, list[Truth]] = {}
        for truth in truths:
            self._truths.setdefault(truth.group, []).append(truth)
        self.healthy = cache(self._healthy)

    def compare(self, truth: Truth) -> Comparison | None:
        """Compare one faulty case; None if its group has no twin."""
        scenario = Scenario.model_validate(truth.recipe["scenario"])
        if scenario.build_workload().kind != "training":
            return None
        if (twin := self.healthy(truth.group)) is None:
            return None
        speeds, without, recorded = twin
        arm = str(truth.recipe["case"]["arm"])
        job = twin_job(scenario, speeds, SEED, STEPS)
        for injection in scenario.injections(arm):
            perturb(job, injection)
        slow = seconds(job, compiled(job))
        assert isinstance(truth.validation, Validation)
        real = truth.validation.ratio.value
        return Comparison(
            truth.group,
            arm,
            truth.faults[0].cause,
            scenario.ranks,
            real,
            slow / without,
            without / recorded,
        )

    def _healthy(self, group: str) -> tuple[Speeds, float, float] | None:
        """Return a group's speeds, its twin's mean step and the recorded one, in s."""
        truths = self._truths[group]
        tables = next(filter(None, map(self._recorded, truths)), None)
        if tables is None:
            return None
        scenario = Scenario.model_validate(truths[0].recipe["scenario"])
        speeds = calibrated(scenario, tables)
        job = twin_job(scenario, speeds, SEED, STEPS)
        middle = float(tables["steps"]["duration_ns"].median()) / 1e9
        return speeds, seconds(job, compiled(job)), middle

    def _recorded(self, truth: Truth) -> Mapping[str, pd.DataFrame] | None:
        """Return the tables of a healthy recording: the reference run, or a healthy case itself."""
        case = self._suite.case(truth.id)
        runs: list[Recording] = [] if case.reference is None else [case.reference]
        if truth.verdict == "healthy" and not truth.decoys:
            runs.append(case)
        for run in runs:
            if run.has("steps") and _tells_phases(run.steps):
                return {name: getattr(run, name) for name in TABLES if run.has(name)}
        return None


def _tells_phases(steps: pd.DataFrame) -> bool:
    return len(steps) >= LEAST_ROWS and bool(steps[PHASES].notna().all().all())


def by_cause(rows: Iterable[Comparison]) -> str:
    """Return a Markdown table with a line for each cause.

    Agreement is the simulated over the real slow-down: the median, least and most of its cases.
    """
    groups: dict[str, list[Comparison]] = {}
    for row in rows:
        groups.setdefault(row.cause, []).append(row)
    if not groups:
        raise InputError("must have a comparison at least", found="none")
    lines = [
        "| cause | arms | real | simulated | agreement | within |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(cause, groups[cause]) for cause in sorted(groups)]
    everything = [row for own in groups.values() for row in own]
    return "\n".join([*lines, _line("all", everything)])


def _line(name: str, rows: list[Comparison]) -> str:
    agreement = [row.agreement for row in rows]
    shown = f"{median(agreement):.2f} ({min(agreement):.2f} to {max(agreement):.2f})"
    within = sum(row.agrees for row in rows)
    real, simulated = (
        _span([getattr(row, part) for row in rows]) for part in ("real", "simulated")
    )
    return f"| {name} | {len(rows)} | {real} | {simulated} | {shown} | {within} |"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
