"""Scenarios: what to break, in which job, and what to record of it.

One scenario is one group of cases: one workload configuration, one recording session. Its
arms are the faults and decoys; every arm is measured against the healthy job in the same
session. A matrix is a list of scenarios over shared defaults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from cases.documents import canonical_json, parse_record, read_yaml
from cases.errors import ScenarioError
from cases.schema import Name, Record
from injectors.ablations import Ablation
from injectors.decoys import DECOYS
from injectors.faults import FAULTS, Fault, Injection
from injectors.sim.job import Places
from injectors.sim.machine import MACHINES
from injectors.sim.workloads import SIMULATED, SimulatedWorkload
from injectors.workloads import WORKLOADS, Workload

HEALTHY = "healthy"
OBJECTIVE = "As many steps a second as this hardware allows, with unchanged numerics."
RUN_STEPS = 500
RUN_PROFILED_STEPS = 10
# What a job is started with: settings that no knob can change while it runs.
SETTINGS: dict[str, Any] = {
    "bucket_mb": 1.0,  # gradient buckets of DDP
    "element_type": "float32",  # of the parameters
    "environment": {},  # further environment variables of the ranks
    "pin_memory": True,  # batches for a CUDA device are copied from pinned memory
    "layers_moved": 0,  # layers that the last stage of a pipeline takes over from the others
    "recompile_limit": 1_000_000,  # graphs of a function before it is left to the eager path
    "threads": 1,  # threads of an operator
    "workload": {},  # parameters that replace the scenario's
}
Withheld = Literal[
    "nothing",
    "all_but_progress",
    "all_but_steps",
    # Of simulated cases only, by their names in the taxonomy's `insufficient`:
    "step_walls_only",
    "single_rank_trace",
    "collectives_without_token_counts",
    "version_drop_without_counters",
    "coarse_sampling",
    "coarse_microbatch_timers",
    "unaligned_clocks",
    "congestion_mark_only",
    "unlogged_preemptions",
    "no_baseline_single_gpu",
    "everything_changed_together",
]
RECORDED_WITHHELD: tuple[Withheld, ...] = ("nothing", "all_but_progress", "all_but_steps")


class Trials(Record):
    """How labels are measured, fixed beforehand.

    Faults take part in `blocks` blocks that decide and `fresh` ones for the cost; decoys go on
    for `further` ones, since that nothing is lost takes more pairs to show. The healthy job is
    compared with itself in `null_pairs` pairs of adjacent trials of `null_steps` steps, spread
    evenly over the blocks.
    """

    blocks: int = Field(default=16, ge=4)
    fresh: int = Field(default=8, ge=4)
    further: NonNegativeInt = 0
    steps: PositiveInt = 10
    null_pairs: int = Field(default=400, ge=4)
    null_steps: PositiveInt = 1


class Arm(Record):
    """A fault, a decoy or an ablation by name, with its parameters, or two faults at once.

    `both` names two arms of the scenario that are faults; `ablate` the cause whose cost is taken
    away (see injectors.ablations).
    """

    fault: str | None = None
    decoy: str | None = None
    ablate: str | None = None
    both: tuple[Name, Name] | None = None
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_known_kind(self) -> Arm:
        kinds = (self.fault, self.decoy, self.ablate, self.both)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("an arm must name either a fault or a decoy, ablate or both")
        if self.both is not None:
            if self.parameters:
                raise ValueError(f"{list(self.both)} have parameters of their own")
            return self
        if self.fault is not None and self.fault not in FAULTS:
            raise ValueError(f"unknown fault {self.fault!r}, must be one of {sorted(FAULTS)}")
        if self.decoy is not None and self.decoy not in DECOYS:
            raise ValueError(f"unknown decoy {self.decoy!r}, must be one of {sorted(DECOYS)}")
        self.injection()
        return self

    def injection(self) -> Injection:
        """Return the fault, decoy or ablation of a single arm with validated parameters."""
        if self.ablate is not None:
            return Ablation.model_validate({**self.parameters, "cause": self.ablate})
        table: dict[str, type[Injection]] = {**FAULTS, **DECOYS}
        return table[self.fault or self.decoy or ""].model_validate(self.parameters)


class CasePlan(Record):
    """One case to ship: which arm is recorded and what is withheld from the diagnoser.

    `all_but_progress` leaves rank 0's mean step time, `all_but_steps` every rank's step with its
    phases. Phases tell many causes; only those that lengthen backward alone, on all ranks
    alike, can be shipped as undecidable under the latter.
    """

    arm: str
    withhold: Withheld = "nothing"


TWIN = CasePlan(arm=HEALTHY)


class Scenario(Record):
    """A workload, its place, the arms, and the cases to make of them.

    `question` regression ships a reference run with every case; audit states the `objective`
    instead, and its healthy cases need ablations. `shape` run is long and profiled briefly;
    `stacks` lets the profiler note call stacks, which makes traces many times as large.
    With `hosts` above 1 the ranks are spread over so many hosts, network namespaces of one
    machine, and those of a host share its interface; else each rank has an interface of its own.
    `link_mbit_per_s` is what an interface carries in a healthy job; by default what it can.
    Workloads that exist only in the simulator run on a `machine` with GPUs; how many hosts they
    have follows from it. There `trials` mean nothing: costs are exact.
    """

    format: str = "evalharness.scenario/1.0"
    name: Name
    workload: str
    parameters: dict[str, Any] = {}
    machine: str = "cpu"
    ranks: PositiveInt = 1
    cores: PositiveInt = 2
    pinned: bool = False
    bucket_mb: PositiveFloat = 1.0
    hosts: PositiveInt = 1
    link_mbit_per_s: PositiveFloat | None = None
    seed: NonNegativeInt = 0
    question: Literal["regression", "audit"] = "regression"
    objective: str = Field(default=OBJECTIVE, min_length=1, max_length=200)
    shape: Literal["snapshot", "run"] = "snapshot"
    steps: int = Field(default=60, ge=20)
    profiled_steps: PositiveInt = 6
    stacks: bool = False
    trials: Trials = Trials()
    arms: dict[Name, Arm]
    cases: tuple[CasePlan, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        known = {**WORKLOADS, **SIMULATED}
        if self.workload not in known:
            raise ValueError(f"unknown workload {self.workload!r}, must be one of {sorted(known)}")
        self._check_machine()
        self.build_workload().check_ranks(self.ranks)
        if self.profiled_steps > self.steps - 2:
            raise ValueError(f"profiled_steps must be below steps - 1, got {self.profiled_steps}")
        for case in self.cases:
            if case.arm not in (*self.arms, HEALTHY):
                raise ValueError(
                    f"case arm {case.arm!r} must be {HEALTHY!r} or one of {sorted(self.arms)}"
                )
            if case.arm in self.ablations():
                raise ValueError(f"case arm {case.arm!r} is an ablation, which makes no case")
            if case.withhold == "all_but_steps" and not self.simulated_only:
                self._check_hidden_in_backward(case.arm)
            if case.withhold not in RECORDED_WITHHELD and not self.simulated_only:
                raise ValueError(f"withhold {case.withhold!r} is for simulated workloads alone")
        if HEALTHY in self.arms:
            raise ValueError(f"{HEALTHY!r} names the job without injection and can't be an arm")
        self._check_pairs_of_arms()
        if self.hosts > self.ranks:
            raise ValueError(f"hosts must be at most {self.ranks}, got {self.hosts}")
        if "network_shaping" in self.needs() and self.ranks < 2 and not self.simulated_only:
            raise ValueError("a slow link needs at least 2 ranks")
        for name, arm in self.arms.items():
            if arm.both is None and not (own := arm.injection()).fits(self):
                what = arm.fault or arm.decoy
                raise ValueError(
                    f"arm {name!r}: {what} must have a workload of"
                    f" {self._offering(own)} that offers it, and at least"
                    f" {own.least_ranks} ranks, got {self.workload} on {self.ranks}"
                )
        for name, fault in self.faults().items():
            rank = getattr(fault, "rank", None)
            if rank is not None and rank >= self.ranks:
                raise ValueError(f"arm {name!r}: rank must be below {self.ranks}, got {rank}")
            look = fault.simulated_misfit if self.simulated_only else fault.misfit
            if reason := look(self):
                raise ValueError(f"arm {name!r}: {reason}")
        return self

    def _offering(self, injection: Injection) -> list[str]:
        if self.simulated_only:
            return [] if injection.simulated is None else list(injection.simulated or SIMULATED)
        return list(injection.workloads or WORKLOADS)

    def _check_machine(self) -> None:
        if self.machine not in MACHINES:
            raise ValueError(f"machine must be one of {sorted(MACHINES)}, got {self.machine!r}")
        if self.simulated_only == (MACHINES[self.machine].gpu is None):
            raise ValueError(
                f"machine must be {'one with GPUs' if self.simulated_only else 'cpu'} for"
                f" {self.workload}, got {self.machine!r}"
            )

    @property
    def simulated_only(self) -> bool:
        """Whether the workload exists only in the simulator."""
        return self.workload in SIMULATED

    @property
    def places(self) -> Places:
        """Where the ranks of a simulated job run."""
        workload = self.build_workload()
        if isinstance(workload, SimulatedWorkload):
            return workload.places(self.ranks, MACHINES[self.machine])
        return Places(ranks=self.ranks, per_host=-(-self.ranks // self.hosts), data=self.ranks)

    def _check_hidden_in_backward(self, arm: str) -> None:
        if self.build_workload().parallelism(self.ranks) != {"data": self.ranks}:
            raise ValueError("all_but_steps needs ranks that meet in backward alone")
        for fault in self.faulty().get(arm, ()):
            if not fault.backward_alone:
                raise ValueError(f"case arm {arm!r}: the phases of steps tell {fault.cause}")

    def host(self, rank: int) -> int:
        """Return the number of the host that a rank runs on."""
        return self.places.host(rank) if self.simulated_only else rank * self.hosts // self.ranks

    def interface(self, rank: int) -> int:
        """Return the number of a rank's network interface."""
        return self.host(rank) if self.hosts > 1 else rank

    @model_validator(mode="after")
    def _shape_and_question_fit(self) -> Scenario:
        long = self.steps >= RUN_STEPS and self.profiled_steps <= RUN_PROFILED_STEPS
        if self.shape == "run" and not long:
            raise ValueError(
                f"a run must have at least {RUN_STEPS} steps and at most {RUN_PROFILED_STEPS}"
                f" profiled ones, got {self.steps} and {self.profiled_steps}"
            )
        if self.question == "audit":
            if any(case.withhold != "nothing" for case in self.cases):
                raise ValueError("an audit without signals can't be answered: withhold nothing")
            if not self.ablations() and not self.simulated_only:
                raise ValueError("an audit needs ablations: healthy means headroom was looked for")
        for name, ablation in self.ablations().items():
            self.build_workload(ablation.workload)
            if strangers := sorted(set(ablation.settings()) - set(SETTINGS)):
                raise ValueError(f"arm {name!r}: unknown settings {strangers}")
        return self

    def _check_pairs_of_arms(self) -> None:
        singles = self.faults()
        for name, pair in ((name, arm.both) for name, arm in self.arms.items() if arm.both):
            if strangers := sorted(set(pair) - set(singles)):
                raise ValueError(f"arm {name!r}: must combine fault arms, got {strangers}")
            first, second = (singles[member] for member in pair)
            if first.cause == second.cause:
                raise ValueError(f"arm {name!r}: must combine two causes, got {first.cause} twice")
            if self.simulated_only:
                continue
            if shared := sorted(set(first.settings()) & set(second.settings()) - {"environment"}):
                raise ValueError(f"arm {name!r}: both faults set {shared}")
            started = first.settings() or second.settings()
            if started and "network_shaping" in (*first.needs, *second.needs):
                raise ValueError(f"arm {name!r}: only the healthy job's links can be shaped")

    def build_workload(self, changes: Mapping[str, Any] | None = None) -> Workload:
        """Return the workload with validated parameters, some of them changed."""
        kind: type[Workload] = {**WORKLOADS, **SIMULATED}[self.workload]
        return kind.model_validate({**self.parameters, **(changes or {})})

    def settings(self) -> dict[str, Any]:
        """Return what every job of this scenario starts with, unless an arm asks otherwise."""
        return {**SETTINGS, "bucket_mb": self.bucket_mb}

    @property
    def digest(self) -> str:
        """Content digest, by which a finished recording is recognised; defaults don't count."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        return hashlib.sha256(canonical_json(content)).hexdigest()

    def injections(self, name: str) -> tuple[Injection, ...]:
        """Return what acts in an arm: one injection, or two faults."""
        arm = self.arms[name]
        return tuple(self.arms[member].injection() for member in arm.both or (name,))

    def needs(self) -> set[str]:
        """Return the capabilities that the arms and the job's own network need, by name."""
        single = (arm.injection() for arm in self.arms.values() if arm.both is None)
        needs = {need for injection in single for need in injection.needs}
        own = self.hosts > 1 or self.link_mbit_per_s is not None
        return needs | ({"network_shaping"} if own else set())

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return what an arm's own job is started with; nothing where it needs no own job."""
        merged: dict[str, Any] = {}
        for injection in self.injections(name):
            merged = _merge(merged, injection.settings())
        return merged

    def faults(self) -> dict[str, Fault]:
        """Return the arms that are one fault, by name."""
        found = {name: arm.injection() for name, arm in self.arms.items() if arm.both is None}
        return {name: item for name, item in found.items() if isinstance(item, Fault)}

    def faulty(self) -> dict[str, tuple[Fault, ...]]:
        """Return the arms that break the job, each with its faults."""
        single = self.faults()
        members = {name: arm.both or (name,) for name, arm in self.arms.items()}
        return {
            name: tuple(single[member] for member in own)
            for name, own in members.items()
            if set(own) <= set(single)
        }

    def ablations(self) -> dict[str, Ablation]:
        """Return the arms that take a suspected cost away, by name."""
        found = {name: arm.injection() for name, arm in self.arms.items() if arm.both is None}
        return {name: item for name, item in found.items() if isinstance(item, Ablation)}


def read_scenario(path: Path) -> Scenario:
    """Read one scenario file."""
    return parse_record(read_yaml(path), Scenario, where=path)


def read_matrix(path: Path) -> list[Scenario]:
    """Read a matrix: `defaults` by name, `scenarios` that each extend one of them.

    A scenario's mappings are merged into its default's, key by key; everything else replaces.
    """
    data = read_yaml(path)
    if not isinstance(data, dict) or not isinstance(data.get("scenarios"), list):
        raise ScenarioError("must be a mapping with a list", where=path, field="scenarios")
    if data.get("format") != "evalharness.matrix/1.0":
        raise ScenarioError(
            "must be evalharness.matrix/1.0", where=path, field="format", found=data.get("format")
        )
    defaults = data.get("defaults", {})
    _must_map(defaults, path, "defaults")
    scenarios = []
    for number, item in enumerate(data["scenarios"]):
        field = f"scenarios.{number}"
        _must_map(item, path, field)
        base = item.get("extends")
        if base is not None and base not in defaults:
            must = f"must be one of {sorted(defaults)}"
            raise ScenarioError(must, where=path, field=f"{field}.extends", found=base)
        _must_map(defaults.get(base, {}), path, f"defaults.{base}")
        own = {key: value for key, value in item.items() if key != "extends"}
        merged = _merge(defaults.get(base, {}), own)
        merged.setdefault("format", "evalharness.scenario/1.0")
        scenarios.append(parse_record(merged, Scenario, where=f"{path}: {field}"))
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError("must be unique", where=path, field="name", found=name)
    return scenarios


def _must_map(value: Any, path: Path, field: str) -> None:
    if not isinstance(value, dict):
        raise ScenarioError("must be a mapping", where=path, field=field, found=value)


def _merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in extra.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
