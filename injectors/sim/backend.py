"""From a scenario to labelled cases by simulation: `record --backend sim` and suites.

Every run of a group has its own seed, but for those that a label compares: they share one, so
that the difference is the fault's alone. Shipped are other runs: one for each case, one reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any

from cases.bundle import RunData
from cases.schema import Decoy, Fault, Topology
from cases.tables import SIGNALS
from cases.truth import Truth, Witness, set_name
from injectors.build import split_of, witness_of
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults import Fault as InjectedFault
from injectors.faults.base import Injection
from injectors.label_rule import shows
from injectors.rivals import BELOW_THRESHOLD
from injectors.scenario import HEALTHY, TWIN, Arm, CasePlan, Scenario, Withheld
from injectors.sim import counterfactual, noise
from injectors.sim.aiming import Aim, aimed
from injectors.sim.job import Job
from injectors.sim.made import MadeCase, MadeGroup
from injectors.sim.public import describe, sampled_ranks
from injectors.sim.recording import measure, perturb, record, set_up
from injectors.sim.releases import release, upgraded
from injectors.sim.withheld import withhold

VERSION = 1  # raised when the same scenario gives other cases
TRACED_RANKS = 2


@dataclass
class Group:
    """One scenario on its way to cases.

    Attributes:
        scenario: What to simulate.
        private_seed: Mixed into every seed and id of a suite that nobody has seen.
        aims: How strong some of the arms are, which the scenario has only in their mildest form.
    """

    scenario: Scenario
    private_seed: int | None = None
    aims: tuple[Aim, ...] = ()
    _seconds: dict[tuple[str, ...], tuple[float, ...]] = field(default_factory=dict)
    _slowdowns: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The group's name in labels; of a private suite it differs from the public one's."""
        if self.private_seed is None:
            return self.scenario.name
        return f"{self.scenario.name}-{self.key % 2**24:06x}"

    @cached_property
    def key(self) -> int:
        """The group's own key: all of its seeds follow from it."""
        private = "" if self.private_seed is None else str(self.private_seed)
        aims = [aim.digest for aim in self.aims]
        return noise.key(self.scenario.seed, self.scenario.digest, *aims, private, VERSION)

    @property
    def digest(self) -> str:
        """By which a finished group is recognised."""
        return f"{self.key:016x}"

    def make(self) -> MadeGroup:
        """Simulate, decide, and make the cases that are proven; the twin comes first."""
        made: list[MadeCase] = []
        refused: dict[str, str] = {}
        plans = sorted(enumerate(self.scenario.cases), key=lambda item: item[1] != TWIN)
        for number, plan in plans:
            found = self._make(number, plan, made[0].info.id if made else None)
            if isinstance(found, str):
                refused[f"{self.scenario.name}/{plan.arm}/{plan.withhold}"] = found
                if plan == TWIN:
                    break
            else:
                made.append(found)
        return MadeGroup(self.name, tuple(made), refused)

    def job(self, what: str, injections: Iterable[Injection] = ()) -> Job:
        """Return a job of the group with its own seed, broken by `injections`."""
        job = set_up(self.scenario, noise.key(self.key, what) >> 1)
        job.versions = release(self.key)
        for injection in injections:
            perturb(job, injection)
        return job

    def case_job(self, number: int, injections: Iterable[Injection] = ()) -> Job:
        """Return the job of a case.

        Where signals are withheld, other versions than the reference run's prove nothing: all
        cases have them.
        """
        job = self.job(f"case-{number}", injections)
        if self.scenario.cases[number].withhold != "nothing":
            job.versions = upgraded(release(self.key))
        return job

    def _make(self, number: int, plan: CasePlan, twin: str | None) -> MadeCase | str:
        scenario = self.scenario_of(number, plan)
        if isinstance(scenario, str):
            return scenario
        injections = () if plan.arm == HEALTHY else scenario.injections(plan.arm)
        seconds = self._every_set(injections)
        verdict = counterfactual.judge(seconds, len(injections))
        if isinstance(verdict, str):
            return verdict
        if not all(isinstance(injections[i], InjectedFault) for i in verdict.faults):
            return f"what should cost nothing is no decoy here: {verdict.joint}"
        job, run = self._recorded(number, injections)
        # A faulty recording is held against its twin, a healthy one against its reference.
        against = self._twin_seconds if verdict.faults else self.reference[1]
        ratio = run[1] / against
        decision = "faulty" if verdict.faults else "healthy"
        if not shows(decision, ratio):
            return f"the shipped run does not show it: ratio {ratio:.3f}, {verdict.joint}"
        validation = counterfactual.record(
            self._label_seeds,
            [_cause(injection) for injection in injections],
            seconds,
            ratio,
            self._ablated() if decision == "healthy" else None,
        )
        public = withhold(run[0], plan.withhold)
        info = describe(self.scenario, job, self._id(number), public, self.key)
        audit = self.scenario.question == "audit"
        truth = self._truth(info.topology, plan, injections, verdict, seconds, run[0], public)
        if isinstance(truth, str):
            return truth
        return MadeCase(
            info=info,
            tables=public.tables,
            traces=public.traces,
            reference=None if audit else withhold(self.reference[0], plan.withhold),
            truth=Truth(
                id=info.id,
                group=self.name,
                split=split_of(self.name),
                twin=twin,
                validation=validation,
                recipe={
                    "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
                    "case": plan.model_dump(mode="json"),
                    "backend": f"sim {VERSION}",
                    "private_seed": self.private_seed,
                },
                **truth,
            ),
        )

    def _truth(
        self,
        topology: Topology,
        plan: CasePlan,
        injections: Sequence[Injection],
        verdict: counterfactual.Outcome,
        seconds: counterfactual.Seconds,
        whole: RunData,
        public: RunData,
    ) -> dict[str, Any] | str:
        decoys = tuple(_decoy(injections[i]) for i in verdict.decoys)
        if not verdict.faults:
            return {"verdict": "healthy", "decoys": decoys}
        found = [injections[i] for i in verdict.faults]
        shares = counterfactual.costs(seconds, len(injections), verdict.faults)
        own = [fault for fault in found if isinstance(fault, InjectedFault)]
        faults = tuple(
            Fault(
                cause=fault.cause,
                locus=fault.locus(topology),
                lost_fraction=share,
                acceptable=fault.acceptable,
                symptoms=fault.symptoms,
                victims=fault.victims(topology),
                redundancy_group=plan.arm if verdict.redundant else None,
            )
            for fault, share in zip(own, shares, strict=True)
        )
        candidates = candidates_of(self.scenario, plan.withhold)
        if candidates and {fault.cause for fault in faults} <= set(candidates):
            return {
                "verdict": "undecidable",
                "faults": faults,
                "decoys": decoys,
                "candidates": candidates,
                "missing_signals": missing(whole, public),
            }
        return {
            "verdict": "faulty",
            "faults": faults,
            "decoys": decoys,
            "witness": self._witness(own),
        }

    def _told_by(self, fault: InjectedFault) -> tuple[str, str]:
        """The twin of a recorded job has a recorded job's signals, and its witness."""
        return fault.simulated_witness() if self.scenario.simulated_only else fault.witness()

    def _witness(self, faults: Sequence[InjectedFault]) -> Witness:
        audit = self.scenario.question == "audit"
        queries = [fault.audit_witness() if audit else self._told_by(fault) for fault in faults]
        return witness_of([query for query in queries if query is not None])

    def scenario_of(self, number: int, plan: CasePlan) -> Scenario | str:
        """The scenario with the strength that an arm was aimed at, or why there is none."""
        aim = next((aim for aim in self.aims if aim.arm == plan.arm), None)
        arm = None if aim is None else aimed(aim, partial(self._shipped_slowdown, number))
        if arm is None or isinstance(arm, str):
            return arm or self.scenario
        arms = {**self.scenario.arms, plan.arm: arm}
        return self.scenario.model_copy(update={"arms": arms})

    def _shipped_slowdown(self, number: int, arm: Arm) -> float:
        """How slow a case would look: the run that would be shipped over the reference run."""
        known = f"{number} {arm.model_dump_json()}"
        if known not in self._slowdowns:
            seconds = measure(self.case_job(number, [arm.injection()]))
            self._slowdowns[known] = seconds / self.reference[1]
        return self._slowdowns[known]

    @cached_property
    def _label_seeds(self) -> tuple[int, ...]:
        serving = self.scenario.build_workload().kind == "inference"
        count = counterfactual.SEEDS if serving else 1
        return tuple(noise.key(self.key, "label", i) >> 1 for i in range(count))

    def _every_set(self, injections: Sequence[Injection]) -> dict[str, tuple[float, ...]]:
        """Mean seconds of a step under every set of the injections, for each label seed."""
        numbers = range(len(injections))
        return {
            set_name(chosen): self._measured([injections[i] for i in chosen])
            for size in range(len(injections) + 1)
            for chosen in combinations(numbers, size)
        }

    def _measured(self, injections: Sequence[Injection]) -> tuple[float, ...]:
        known = tuple(f"{type(i).__name__} {i.model_dump_json()}" for i in injections)
        if known not in self._seconds:
            jobs = (self._label_job(seed, injections) for seed in self._label_seeds)
            self._seconds[known] = tuple(measure(job) for job in jobs)
        return self._seconds[known]

    def _label_job(self, seed: int, injections: Sequence[Injection]) -> Job:
        job = set_up(self.scenario, seed)
        for injection in injections:
            perturb(job, injection)
        return job

    def _recorded(
        self, number: int, injections: Sequence[Injection] = ()
    ) -> tuple[Job, tuple[RunData, float]]:
        """What is recorded of a case."""
        if number == self._twin:
            return self._twin_run
        job = self.case_job(number, injections)
        return job, self._record(job)

    @cached_property
    def _twin_run(self) -> tuple[Job, tuple[RunData, float]]:
        """The twin's run, which is kept: others are held against it."""
        job = self.case_job(self._twin)
        return job, self._record(job)

    def _record(self, job: Job) -> tuple[RunData, float]:
        ranks = min(TRACED_RANKS, job.places.ranks)
        return record(job, sampled_ranks(job.places, self.key, ranks))

    @cached_property
    def reference(self) -> tuple[RunData, float]:
        """The reference run, with the measure that labels compare."""
        return self._record(self.job("reference"))

    @property
    def _twin(self) -> int:
        return self.scenario.cases.index(TWIN)

    @property
    def _twin_seconds(self) -> float:
        return self._twin_run[1][1]

    def _ablated(self) -> dict[str, tuple[float, ...]]:
        """For an audit, the healthy job without what diagnosers like to blame."""
        if self.scenario.question != "audit":
            return {}
        from injectors.sim.ablations import ABLATIONS

        found = {}
        for cause, improve in ABLATIONS.items():
            jobs = [set_up(self.scenario, seed) for seed in self._label_seeds]
            for job in jobs:
                improve(job)
            found[cause] = tuple(measure(job) for job in jobs)
        return found

    def _id(self, number: int) -> str:
        return hashlib.sha256(f"{self.digest}/{number}".encode()).hexdigest()[:12]


def _cause(injection: Injection) -> str:
    name: str = injection.cause if isinstance(injection, InjectedFault) else injection.name  # type: ignore[attr-defined]
    return name


def _decoy(injection: Injection) -> Decoy:
    if isinstance(injection, InjectedFault):
        return Decoy(name=BELOW_THRESHOLD, looks_like=(injection.cause,))
    name = _cause(injection)
    return Decoy(name=name, looks_like=DECOYS[name].looks_like)


def candidates_of(scenario: Scenario, withheld: Withheld) -> tuple[str, ...]:
    """Causes that what is left under `withheld` cannot tell apart, of those that fit the job."""
    from injectors.sim.withheld import CANDIDATES

    fitting = [cause for cause, fault in FAULTS.items() if fault.fits(scenario)]
    named = CANDIDATES[withheld]
    return tuple(cause for cause in fitting if named is None or cause in named)


def missing(whole: RunData, public: RunData) -> tuple[str, ...]:
    """Signals, and columns of those that are left, that a whole recording has and this has not."""
    had = {*whole.tables, *(("trace_events",) if whole.traces else ())}
    left = {*public.tables, *(("trace_events",) if public.traces else ())}
    gone = [name for name in SIGNALS if name in had - left]
    emptied = [
        f"{name}.{column}"
        for name in SIGNALS
        if name in public.tables
        for column in public.tables[name].columns
        if public.tables[name][column].isna().all() and whole.tables[name][column].notna().any()
    ]
    return (*gone, *emptied)
