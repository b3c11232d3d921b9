"""The matrix of a simulated suite: jobs, graded faults, and how groups are put together of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from cases.documents import parse_record, read_yaml
from cases.schema import CauseName, Name, Record
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.scenario import Withheld

MATRIX = Path(__file__).parents[1] / "scenarios" / "simulated.yaml"


class Configuration(Record):
    """A job, of which `groups` groups are made.

    Attributes:
        workload, machine, ranks, steps, profiled_steps, shape, question: As of a scenario.
        parameters: Of the workload.
        vary: Parameters of which each group takes the next value.
        groups: Groups in the full suite.
        smoke: Groups in the small one.
    """

    workload: str
    machine: str
    ranks: PositiveInt
    steps: PositiveInt = 24
    profiled_steps: PositiveInt = 2
    shape: Literal["snapshot", "run"] = "snapshot"
    question: Literal["regression", "audit"] = "regression"
    parameters: dict[str, Any] = {}
    vary: dict[str, list[Any]] = {}
    groups: NonNegativeInt = 1
    smoke: NonNegativeInt = 0


class Matrix(Record):
    """The whole of it.

    Attributes:
        faults: Cause -> parameters by rising or falling cost; `$rank`, `$peer` and `$host` are
            drawn by each group, `$pair` is two ranks of a host.
        decoys: The same of decoys.
        withheld: Ways of withholding, each with the causes of which a group gets one.
        faults_per_group, decoys_per_group, withheld_per_group: Arms of a group.
        both_every: Every so many groups have a case with two faults.
    """

    format: str = "evalharness.simulated_matrix/1.0"
    version: PositiveInt
    configurations: dict[Name, Configuration] = Field(min_length=1)
    faults: dict[CauseName, list[dict[str, Any]]]
    decoys: dict[CauseName, list[dict[str, Any]]] = {}
    withheld: dict[Withheld, list[CauseName]] = {}
    faults_per_group: PositiveInt = 4
    decoys_per_group: NonNegativeInt = 1
    both_every: PositiveInt = 4

    @model_validator(mode="after")
    def _known(self) -> Matrix:
        for table, known in ((self.faults, FAULTS), (self.decoys, DECOYS)):
            if strangers := sorted(set(table) - set(known)):
                raise ValueError(f"must be of {sorted(known)}, got {strangers}")
        for cause, grades in {**self.faults, **self.decoys}.items():
            if not grades:
                raise ValueError(f"{cause} must have at least one set of parameters")
        return self


def read(path: Path = MATRIX) -> Matrix:
    """Read the matrix of simulated suites."""
    return parse_record(read_yaml(path), Matrix, where=path)
