"""How a group of fleet cases is described: its fleet, its jobs, and the arms that become cases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from cases.documents import parse_record, read_yaml
from cases.schema import CauseName, Name, Record
from injectors.fleet.catalogue import CARDS, MODELS, RECIPES

MATRIX = Path(__file__).with_name("fleet.yaml")
Grade = Literal["slight", "mild", "medium", "severe"]
VersionColumn = Literal["driver", "nccl", "framework", "image", "storage"]
SegmentColumn = Literal[
    "driver", "nccl", "framework", "image", "storage", "machine", "gpu_serial", "config", "model",
    "gpu_model", "ranks",
]  # fmt: skip
Percent = Annotated[int, Field(ge=0, le=100)]


class Injected(Record):
    """A fault of one segment: its cause, the columns that name the segment, and how strong."""

    cause: CauseName
    columns: tuple[SegmentColumn, ...] = Field(min_length=1, max_length=2)
    grade: Grade


class Arm(Record):
    """What is done to a group's fleet in one case.

    An arm without a fault is healthy; the first arm is the plain one, the twin of the others.
    `attracts` is the column whose new version the heavy jobs take first (confounder traffic_mix).
    """

    name: Name
    fault: Injected | None = None
    confounders: tuple[CauseName, ...] = ()
    attracts: VersionColumn = "framework"


class FleetGroup(Record):
    """One fleet and its jobs: the configuration that the cases of a group share.

    Attributes:
        jobs: Jobs of a period; case and reference have as many.
        ranks: Numbers of ranks -> weight.
        long_percent: Share of jobs with long inputs.
        together: Columns whose new versions come with the first one's, in the same jobs.
        withheld: What is left null in all of the group's cases, see injectors.fleet.withheld.
    """

    name: Name
    machines: PositiveInt = 12
    gpus_per_machine: Literal[4, 8] = 4
    days: PositiveInt = 14
    jobs: PositiveInt = 1200
    cards: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(min_length=1)
    configs: tuple[str, ...] = Field(min_length=1)
    ranks: dict[PositiveInt, PositiveInt] = {1: 6, 2: 2, 4: 2}
    long_percent: Percent = 35
    together: tuple[VersionColumn, ...] = ()
    withheld: Literal["nothing", "phases", "clock_limits", "loader_split", "tensor_use"] = "nothing"
    arms: tuple[Arm, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _sound(self) -> FleetGroup:
        for field, given, known in (
            ("cards", self.cards, list(CARDS)),
            ("models", self.models, list(MODELS)),
            ("configs", self.configs, list(RECIPES)),
        ):
            if strangers := sorted(set(given) - set(known)):
                raise ValueError(f"{field} must be among {known}, got {strangers}")
        if self.arms[0].fault or self.arms[0].confounders:
            raise ValueError(f"the first arm must be plain, got {self.arms[0]}")
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError(f"arms must have names of their own, got {names}")
        if max(self.ranks) > self.gpus_per_machine:
            raise ValueError(f"ranks must fit on {self.gpus_per_machine} GPUs, got {self.ranks}")
        return self


class Matrix(Record):
    """fleet.yaml."""

    format: str = "evalharness.fleet/1.0"
    groups: tuple[FleetGroup, ...]


def read_matrix(path: Path = MATRIX) -> tuple[FleetGroup, ...]:
    """Read the groups of a matrix file."""
    return parse_record(read_yaml(path), Matrix, where=path).groups
