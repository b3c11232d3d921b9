"""From a recording session to labelled cases; what is not proven is refused with its numbers."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from cases.bundle import RunData, write_case
from cases.case import Case
from cases.documents import read_json, write_record
from cases.errors import QueryError
from cases.schema import CaseInfo, Decoy, Environment, Fault, Split, Topology
from cases.tables import SIGNALS
from cases.truth import Ablated, Truth, Validation, Witness
from cases.witness import holds
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults import Fault as InjectedFault
from injectors.joint import costs, joint_witness, relation, unproven
from injectors.label_rule import decide, lost_fraction, shows, validation
from injectors.measure import ablated, measured
from injectors.public import describe, mean_step_s, read_window, withhold
from injectors.scenario import HEALTHY, TWIN, CasePlan, Scenario, Withheld

SPLITS: tuple[Split, ...] = get_args(Split)


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
        audit = self._scenario.question == "audit"
        reference = None if audit else withhold(self._reference, plan.withhold)
        write_case(target, info, public.tables, public.traces, reference)
        try:
            truth = self._truth(info, plan, result)
            problem = self._witness_problem(target, plan, truth)
            if problem is None:
                write_record(self._places.labels / f"{info.id}.json", truth)
        except BaseException:
            shutil.rmtree(target)  # no case without its label
            raise
        if problem:
            shutil.rmtree(target)
            return problem
        self._twin_made |= plan == TWIN
        return None

    def _validate(self, run: RunData, plan: CasePlan) -> Validation | str:
        """Apply the label rule to the arm, and ask that the shipped recording shows it."""
        fault = plan.arm in self._scenario.faulty()
        found = measured(self._scenario, self._blocks, plan.arm)
        ratio = mean_step_s(run) / mean_step_s(self._twin_run if fault else self._reference)
        result = validation(found.acceptance, found.fresh, ratio, found.alone)
        if not isinstance(result, Validation):
            return str(result)
        wanted = "faulty" if fault else "healthy"
        if result.decision != wanted:
            return f"must be {wanted} to be shipped, {found.decision}"
        if result.alone and (problem := unproven(result)):
            return problem
        if self._scenario.question == "audit" and not fault:
            tried = ablated(self._scenario, self._blocks)
            result = result.model_copy(update={"ablations": tried})
            if problem := headroom(tried):
                return problem
        if fault and not self._queries(plan):
            return "its witness compares with a reference run, which an audit has not"
        if fault and plan.withhold == "nothing" and not self._twin_made:
            twin = measured(self._scenario, self._blocks, HEALTHY)
            return f"its healthy twin is not proven, {twin.decision}"
        if not shows(wanted, ratio):
            return f"the recording does not show it: ratio {ratio:.3f}, {found.decision}"
        return result

    def _queries(self, plan: CasePlan) -> list[tuple[str, str]]:
        """The witness query of each fault of an arm, with what it says; none if one has none."""
        faults = self._scenario.faulty().get(plan.arm, ())
        audit = self._scenario.question == "audit"
        found = [fault.audit_witness() if audit else fault.witness() for fault in faults]
        known = [query for query in found if query is not None]
        return known if len(known) == len(found) else []

    def _truth(self, info: CaseInfo, plan: CasePlan, result: Validation) -> Truth:
        scenario = self._scenario
        arm = scenario.arms.get(plan.arm)
        common: dict[str, Any] = {
            "id": info.id,
            "group": scenario.name,
            "split": split_of(scenario.name),
            "twin": self._twin_id(plan),
            "validation": result,
            "recipe": {
                "scenario": scenario.model_dump(mode="json"),
                "case": plan.model_dump(mode="json"),
            },
        }
        if arm is None or arm.decoy:
            return Truth(verdict="healthy", decoys=self._decoys(plan), **common)
        faults = labelled(plan.arm, scenario.faulty()[plan.arm], info.topology, result)
        if plan.withhold != "nothing":
            return Truth(
                verdict="undecidable",
                faults=faults,
                candidates=candidates(scenario, self._devices, plan.withhold),
                missing_signals=missing(info, self._twin_run),
                **common,
            )
        false_on = (common["twin"],) if common["twin"] else ()
        witness = witness_of(self._queries(plan)).model_copy(update={"false_on": false_on})
        return Truth(verdict="faulty", faults=faults, witness=witness, **common)

    def _decoys(self, plan: CasePlan) -> tuple[Decoy, ...]:
        arm = self._scenario.arms.get(plan.arm)
        if arm is None or arm.decoy is None:
            return ()
        return (Decoy(name=arm.decoy, looks_like=DECOYS[arm.decoy].looks_like),)

    def _twin_id(self, plan: CasePlan) -> str | None:
        if plan == TWIN or not self._twin_made:
            return None
        return self.info(self._twin_window, TWIN).id

    def _witness_problem(self, folder: Path, plan: CasePlan, truth: Truth) -> str | None:
        """Try the witness of every fault on the case and on its twin."""
        if truth.witness is None:
            return None
        case = Case.open(folder)
        twin = Case.open(self._places.cases / truth.twin) if truth.twin else None
        try:
            for sql, says in self._queries(plan):
                if not holds(case, sql):
                    return f"its witness is not true on it: the signals do not show that {says}"
                if twin and holds(twin, sql):
                    return f"its witness is true on its healthy twin as well: {says}"
        except QueryError as error:
            return f"its witness can't be asked: {error}"
        return None


def witness_of(queries: Sequence[tuple[str, str]]) -> Witness:
    """Write the witness of one fault, or of two."""
    if len(queries) > 1:
        return joint_witness(queries)
    ((sql, says),) = queries
    return Witness(sql=" ".join(sql.split()), says=says)


def labelled(
    arm: str, faults: Sequence[InjectedFault], topology: Topology, result: Validation
) -> tuple[Fault, ...]:
    """Write the labels of an arm's accepted faults; their costs come from the fresh pairs."""
    assert result.fresh is not None
    shares = costs(result) if result.alone else (lost_fraction(result.fresh),)
    redundant = bool(result.alone) and relation(result) == "redundant"
    return tuple(
        Fault(
            cause=fault.cause,
            locus=fault.locus(topology),
            lost_fraction=share,
            acceptable=fault.acceptable,
            symptoms=fault.symptoms,
            victims=fault.victims(topology),
            redundancy_group=arm if redundant else None,
        )
        for fault, share in zip(faults, shares, strict=True)
    )


def headroom(tried: Sequence[Ablated]) -> str | None:
    """Say with numbers which ablation may have made a healthy job faster, None if none did."""
    for ablation in tried:
        decision = decide(ablation.trials)
        if decision.verdict != "healthy":
            return f"the job is not shown to be as fast as without {ablation.cause}, {decision}"
    return None


def candidates(scenario: Scenario, devices: int, withheld: Withheld) -> tuple[str, ...]:
    """Causes that could slow this job down and that what is left cannot tell apart."""
    return tuple(
        cause
        for cause, fault in FAULTS.items()
        if fault.fits(scenario)
        and (devices or "cuda" not in fault.needs)
        and (fault.backward_alone or withheld == "all_but_progress")
    )


def missing(info: CaseInfo, whole: RunData) -> tuple[str, ...]:
    """Signals that a whole recording of this job has and the case has not."""
    had = {*whole.tables, *(("trace_events",) if whole.traces else ())}
    return tuple(name for name in SIGNALS if name in had - set(info.signals.present))


def split_of(group: str) -> Split:
    """Draw the split of a whole group from its name: 50 % train, 25 % dev, 25 % test."""
    draw = hashlib.sha256(group.encode()).digest()[0] % 4
    return SPLITS[max(0, draw - 1)]
