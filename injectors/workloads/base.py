"""What every workload offers to the rank loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cases.schema import Record, Scalar
from injectors.recorder.knobs import Knobs

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Context:
    """Where one rank runs: its place in the job, device, settings and scratch folder.

    `worker_cores` are the CPUs for its helper processes; empty: they inherit the rank's.
    """

    rank: int
    world_size: int
    seed: int
    device: torch.device
    knobs: Knobs
    folder: Path
    worker_cores: frozenset[int] = frozenset()


class Workload(Record, ABC):
    """Parameters of a workload; `build` makes the program of one rank."""

    title: ClassVar[str]

    @property
    def settle_steps(self) -> int:
        """Steps until a change of condition is fully felt."""
        return 2

    @abstractmethod
    def build(self, context: Context) -> Program:
        """Make the rank's model, data and optimizer."""

    def prepare(self, folder: Path, seed: int) -> None:
        """Write the files that the job reads, once, before its ranks start."""

    def config(self) -> dict[str, Scalar]:
        """Return the job's own configuration, the same keys in every case of a workload."""
        return self.model_dump(mode="python")


class Program(ABC):
    """One rank's training program, cut into the phases that the rank loop times."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    samples_per_step: int

    @abstractmethod
    def next_batch(self) -> Any:
        """Return the next batch on the device."""

    @abstractmethod
    def forward(self, batch: Any) -> torch.Tensor:
        """Return the loss of a batch."""

    def cold_start(self) -> None:  # noqa: B027 (many programs have nothing to start again)
        """Drop what the first step of a job has to set up."""

    def loader_rows(self) -> list[dict[str, Any]]:
        """Return and forget the loader's rows; times in monotonic ns."""
        return []

    def close(self) -> None:  # noqa: B027 (most programs own no processes)
        """End helper processes."""
