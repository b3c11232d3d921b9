"""From a recording session to labelled cases; what is not proven is refused with its numbers."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.bundle import RunData, write_case
from cases.case import Case
from cases.documents import read_json, write_record
from cases.errors import QueryError
from cases.schema import CaseInfo, Decoy, Environment, Fault, Split, Topology
from cases.tables import SIGNALS
from cases.truth import Truth, Validation, Witness
from cases.witness import holds
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults import Fault as InjectedFault
from injectors.label_rule import lost_fraction, shows, validation
from injectors.measure import measured
from injectors.public import describe, mean_step_s, read_window, withhold
from injectors.scenario import HEALTHY, TWIN, CasePlan, Scenario

SPLITS: tuple[Split, ...] = ("train", "dev", "public_test")


@dataclass
class Outcome:
    """What became of one scenario: ids of the cases made, and reasons of those refused."""

    made: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Folders that a suite's cases and labels go to."""

    cases: Path
    labels: Path


def build(
    scenario: Scenario, recorded: Path, environment: Environment, devices: int, places: Places
) -> Outcome:
    """Make the cases of a recorded scenario; twins come first, witnesses are tried on them."""
    maker = _Maker(scenario, recorded, environment, devices, places)
    plans = list(enumerate(scenario.cases))
    outcome = Outcome()
    for number, plan in sorted(plans, key=lambda item: item[1] != TWIN):
        window = f"case-{number}"
        reason = maker.make(window, plan)
        if reason is None:
            outcome.made.append(maker.info(window, plan).id)
        else:
            outcome.refused[f"{scenario.name}/{plan.arm}/{plan.withhold}"] = reason
    return outcome


class _Maker:
    """Builds single cases of one recorded scenario."""

    def __init__(
        self,
        scenario: Scenario,
        recorded: Path,
        environment: Environment,
        devices: int,
        places: Places,
    ) -> None:
        self._scenario, self._recorded = scenario, recorded
        self._environment, self._devices, self._places = environment, devices, places
        self._blocks: list[dict[str, Any]] = read_json(recorded / "result.json")["blocks"]
        self._reference = read_window(recorded / "reference")
        shipped = [f"case-{n}" for n, plan in enumerate(scenario.cases) if plan == TWIN]
        self._twin_window = shipped[0] if shipped else "twin"
        self._twin_run = read_window(recorded / self._twin_window)
        self._twin_made = False

    def info(self, window: str, plan: CasePlan) -> CaseInfo:
        """Return case.json's content for one window."""
        run = withhold(read_window(self._recorded / window), plan.withhold)
        return describe(self._scenario, window, run, self._environment, self._devices)

    def make(self, window: str, plan: CasePlan) -> str | None:
        """Write one case and its label, or return why it is refused."""
        run = read_window(self._recorded / window)
        result = self._validate(run, plan)
        if isinstance(result, str):
            return result
        info = self.info(window, plan)
        target = self._places.cases / info.id
        shutil.rmtree(target, ignore_errors=True)
        public = withhold(run, plan.withhold)
        reference = withhold(self._reference, plan.withhold)
        write_case(target, info, public.tables, public.traces, reference)
        truth = self._truth(info, plan, result)
        problem = self._witness_problem(target, truth)
        if problem:
            shutil.rmtree(target)
            return problem
        write_record(self._places.labels / f"{info.id}.json", truth)
        self._twin_made |= plan == TWIN
        return None

    def _validate(self, run: RunData, plan: CasePlan) -> Validation | str:
        """Apply the label rule to the arm, and ask that the shipped recording shows it."""
        fault = plan.arm in self._scenario.faults()
        found = measured(self._scenario, self._blocks, plan.arm)
        ratio = mean_step_s(run) / mean_step_s(self._twin_run if fault else self._reference)
        result = validation(found.acceptance, found.fresh, ratio)
        if not isinstance(result, Validation):
            return str(result)
        wanted = "faulty" if fault else "healthy"
        if result.decision != wanted:
            return f"must be {wanted} to be shipped, {found.decision}"
        if fault and plan.withhold == "nothing" and not self._twin_made:
            twin = measured(self._scenario, self._blocks, HEALTHY)
            return f"its healthy twin is not proven, {twin.decision}"
        if not shows(wanted, ratio):
            return f"the recording does not show it: ratio {ratio:.3f}, {found.decision}"
        return result

    def _truth(self, info: CaseInfo, plan: CasePlan, result: Validation) -> Truth:
        scenario = self._scenario
        arm = scenario.arms.get(plan.arm)
        common: dict[str, Any] = {
            "id": info.id,
            "group": scenario.name,
            "split": split_of(scenario),
            "twin": self._twin_id(plan),
            "validation": result,
            "recipe": {
                "scenario": scenario.model_dump(mode="json"),
                "case": plan.model_dump(mode="json"),
            },
        }
        if arm is None or arm.decoy:
            return Truth(verdict="healthy", decoys=self._decoys(plan), **common)
        fault = scenario.faults()[plan.arm]
        label = labelled(fault, info.topology, result)
        if plan.withhold != "nothing":
            return Truth(
                verdict="undecidable",
                faults=(label,),
                candidates=candidates(scenario),
                missing_signals=missing(info, self._twin_run),
                **common,
            )
        sql, says = fault.witness()
        twin = common["twin"]
        witness = Witness(sql=" ".join(sql.split()), says=says, false_on=(twin,) if twin else ())
        return Truth(verdict="faulty", faults=(label,), witness=witness, **common)

    def _decoys(self, plan: CasePlan) -> tuple[Decoy, ...]:
        arm = self._scenario.arms.get(plan.arm)
        if arm is None or arm.decoy is None:
            return ()
        return (Decoy(name=arm.decoy, looks_like=DECOYS[arm.decoy].looks_like),)

    def _twin_id(self, plan: CasePlan) -> str | None:
        if plan == TWIN or not self._twin_made:
            return None
        return self.info(self._twin_window, TWIN).id

    def _witness_problem(self, folder: Path, truth: Truth) -> str | None:
        """Try the witness on the case and on its twin."""
        if truth.witness is None:
            return None
        try:
            if not holds(Case.open(folder), truth.witness.sql):
                return "its witness is not true on it: the signals do not show the cause"
            if truth.twin and holds(Case.open(self._places.cases / truth.twin), truth.witness.sql):
                return "its witness is true on its healthy twin as well"
        except QueryError as error:
            return f"its witness can't be asked: {error}"
        return None


def labelled(fault: InjectedFault, topology: Topology, result: Validation) -> Fault:
    """Write the label of an accepted fault; its cost comes from the fresh pairs."""
    assert result.fresh is not None
    return Fault(
        cause=fault.cause,
        locus=fault.locus(topology),
        lost_fraction=lost_fraction(result.fresh),
        acceptable=fault.acceptable,
        symptoms=fault.symptoms,
        victims=fault.victims(topology),
    )


def candidates(scenario: Scenario) -> tuple[str, ...]:
    """Causes that could slow this workload down and that progress alone cannot tell apart."""
    found = ["cpu_contention_colocated", "memory_bandwidth_contention"]
    if scenario.ranks > 1:
        found.append("slow_link")
    if scenario.workload == "image_classifier":
        found += ["storage_fetch_stall", "dataloader_cpu_bound"]
    if scenario.parameters.get("compiled"):
        found.append("unfused_kernels")
    return tuple(name for name in FAULTS if name in found)


def missing(info: CaseInfo, whole: RunData) -> tuple[str, ...]:
    """Signals that a whole recording of this job has and the case has not."""
    had = {*whole.tables, *(("trace_events",) if whole.traces else ())}
    return tuple(name for name in SIGNALS if name in had - set(info.signals.present))


def split_of(scenario: Scenario) -> Split:
    """Draw the split of a whole group from its name: 50 % train, 25 % dev, 25 % test."""
    draw = hashlib.sha256(scenario.name.encode()).digest()[0] % 4
    return SPLITS[max(0, draw - 1)]
