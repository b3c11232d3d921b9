"""Scenarios: what to break, in which job, and what to record of it.

One scenario is one group of cases: one workload configuration, one recording session. Its
arms are the faults and decoys; every arm is measured against the healthy job in the same
session. A matrix is a list of scenarios over shared defaults.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from cases.documents import canonical_json, parse_record, read_yaml
from cases.errors import ScenarioError
from cases.schema import Name, Record
from injectors.decoys import DECOYS
from injectors.faults import FAULTS, Fault, Injection
from injectors.workloads import WORKLOADS, Workload

HEALTHY = "healthy"
Withheld = Literal["nothing", "all_but_progress"]


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
    """One fault or decoy by name, with its parameters."""

    fault: str | None = None
    decoy: str | None = None
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_known_kind(self) -> Arm:
        if (self.fault is None) == (self.decoy is None):
            raise ValueError("an arm must name either a fault or a decoy")
        if self.fault is not None and self.fault not in FAULTS:
            raise ValueError(f"unknown fault {self.fault!r}, must be one of {sorted(FAULTS)}")
        if self.decoy is not None and self.decoy not in DECOYS:
            raise ValueError(f"unknown decoy {self.decoy!r}, must be one of {sorted(DECOYS)}")
        self.injection()
        return self

    def injection(self) -> Injection:
        """Return the fault or decoy with validated parameters."""
        table: dict[str, type[Injection]] = {**FAULTS, **DECOYS}
        return table[self.fault or self.decoy or ""].model_validate(self.parameters)


class CasePlan(Record):
    """One case to ship: which arm is recorded and what is withheld from the diagnoser."""

    arm: str
    withhold: Withheld = "nothing"


TWIN = CasePlan(arm=HEALTHY)


class Scenario(Record):
    """A workload, its place, the arms, and the cases to make of them."""

    format: str = "evalharness.scenario/1.0"
    name: Name
    workload: str
    parameters: dict[str, Any] = {}
    ranks: PositiveInt = 1
    cores: PositiveInt = 2
    pinned: bool = False
    bucket_mb: PositiveFloat = 1.0
    seed: NonNegativeInt = 0
    steps: int = Field(default=60, ge=20)
    profiled_steps: PositiveInt = 6
    trials: Trials = Trials()
    arms: dict[Name, Arm]
    cases: tuple[CasePlan, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if self.workload not in WORKLOADS:
            raise ValueError(
                f"unknown workload {self.workload!r}, must be one of {sorted(WORKLOADS)}"
            )
        self.build_workload()
        if self.profiled_steps > self.steps - 2:
            raise ValueError(f"profiled_steps must be below steps - 1, got {self.profiled_steps}")
        for case in self.cases:
            if case.arm not in (*self.arms, HEALTHY):
                raise ValueError(
                    f"case arm {case.arm!r} must be {HEALTHY!r} or one of {sorted(self.arms)}"
                )
        if HEALTHY in self.arms:
            raise ValueError(f"{HEALTHY!r} names the job without injection and can't be an arm")
        shaped = any("network_shaping" in arm.injection().needs for arm in self.arms.values())
        if shaped and self.ranks < 2:
            raise ValueError("a slow link needs at least 2 ranks")
        for name, fault in self.faults().items():
            rank = getattr(fault, "rank", 0)
            if rank >= self.ranks:
                raise ValueError(f"arm {name!r}: rank must be below {self.ranks}, got {rank}")
        return self

    def build_workload(self) -> Workload:
        """Return the workload with validated parameters."""
        return WORKLOADS[self.workload].model_validate(self.parameters)

    @property
    def digest(self) -> str:
        """Content digest, by which a finished recording is recognised."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json"))).hexdigest()

    def faults(self) -> dict[str, Fault]:
        """Return the arms that are faults, by name."""
        found = {name: arm.injection() for name, arm in self.arms.items()}
        return {name: item for name, item in found.items() if isinstance(item, Fault)}


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
