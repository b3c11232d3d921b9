"""The matrix of a simulated suite: jobs, graded faults, and how groups are put together of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from cases.documents import parse_record, read_yaml
from cases.schema import CauseName, Name, Record
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.scenario import Withheld

ONLY = "only"  # key of a grade that names the configurations it is for
MATRIX = Path(__file__).parents[1] / "scenarios" / "simulated.yaml"


class Configuration(Record):
    """A job, of which `groups` groups are made.

    Attributes:
        workload, machine, ranks, steps, profiled_steps, shape, question: As of a scenario.
        parameters: Of the workload.
        vary: Parameters of which each group takes the next value.
        step_ms: What a healthy step takes, roughly, group by group; grades may be multiples of it.
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
    step_ms: list[PositiveFloat] = Field(min_length=1)
    groups: NonNegativeInt = 1
    smoke: NonNegativeInt = 0


class Hidden(Record):
    """How strongly a fault acts whose signals are withheld: as all candidates, so it is searched.

    Attributes:
        mild, strong: The ends between which its strength is searched, as grades.
        coarse: Whether it has few strengths only, so that others must cost what one of these does.
        only: Beginnings of the names of the configurations in which it can be that strong.
    """

    mild: dict[str, Any]
    strong: dict[str, Any]
    coarse: bool = False
    only: tuple[str, ...] = ("",)

    @model_validator(mode="after")
    def _same_names(self) -> Hidden:
        if self.mild.keys() != self.strong.keys():
            raise ValueError(f"must name {sorted(self.mild)} twice, got {sorted(self.strong)}")
        return self


class Matrix(Record):
    """The whole of it.

    Attributes:
        faults: Cause -> grades, each the parameters of a fault. `$rank`, `$peer` (a rank of a
            neighbouring host), `$beside` (one of the same host), `$pair` (both) and `$host` are
            drawn by each group; "0.5 step_ms" is half of the configuration's step, and so on (see
            injectors.sim.grades). A grade is for all configurations or, with `only`, for those
            whose names begin so.
        decoys: The same of decoys.
        withheld: Ways of withholding, each with the causes of which a group gets one.
        hidden: Strengths of these causes, the first that is for the configuration.
        hidden_slowdown: What they may cost, least and most.
        faults_per_group, decoys_per_group: Arms of a group.
        both_every: Every so many groups have a case with two faults, those that can.
    """

    format: str = "evalharness.simulated_matrix/1.0"
    version: PositiveInt
    configurations: dict[Name, Configuration] = Field(min_length=1)
    faults: dict[CauseName, list[dict[str, Any]]]
    decoys: dict[CauseName, list[dict[str, Any]]] = {}
    withheld: dict[Withheld, list[CauseName]] = {}
    hidden: dict[CauseName, list[Hidden]] = {}
    hidden_slowdown: tuple[PositiveFloat, PositiveFloat] = (1.12, 1.5)
    faults_per_group: PositiveInt = 4
    decoys_per_group: NonNegativeInt = 1
    both_every: PositiveInt = 1

    @model_validator(mode="after")
    def _known(self) -> Matrix:
        for table, known in ((self.faults, FAULTS), (self.decoys, DECOYS)):
            if strangers := sorted(set(table) - set(known)):
                raise ValueError(f"must be of {sorted(known)}, got {strangers}")
        for cause, grades in {**self.faults, **self.decoys}.items():
            if not grades:
                raise ValueError(f"{cause} must have at least one set of parameters")
            for prefix in (name for grade in grades for name in grade.get(ONLY, ())):
                if not any(name.startswith(prefix) for name in self.configurations):
                    raise ValueError(f"{cause}: no configuration's name begins with {prefix!r}")
        causes = {cause for found in self.withheld.values() for cause in found}
        if strangers := sorted(causes - set(self.hidden)):
            raise ValueError(f"hidden must say how strong these are: {strangers}")
        return self

    def dial(self, cause: str, configuration: str) -> Hidden | None:
        """Return how strong a hidden cause is in a configuration, None where it can't be."""
        of = (dial for dial in self.hidden[cause] if configuration.startswith(dial.only))
        return next(of, None)

    def grades(self, what: str, configuration: str) -> list[dict[str, Any]]:
        """Return the grades of a fault or decoy that are for a configuration."""
        return [
            {name: value for name, value in grade.items() if name != ONLY}
            for grade in {**self.faults, **self.decoys}[what]
            if configuration.startswith(tuple(grade.get(ONLY, ("",))))
        ]


def read(path: Path = MATRIX) -> Matrix:
    """Read the matrix of simulated suites."""
    return parse_record(read_yaml(path), Matrix, where=path)
