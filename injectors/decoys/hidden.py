"""Costs that something else hides, or that are too small to matter."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from injectors.faults.base import Decoy, Run
from injectors.sim.names import SERVING, TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class LowPriorityCompetitor(Decoy):
    """A busy process that yields to the job because of its nice value.

    In a simulated job the processes are on all cores of a `host`.
    """

    name: ClassVar[str] = "low_priority_competitor"
    looks_like: ClassVar[tuple[str, ...]] = (
        "cpu_contention_colocated",
        "memory_bandwidth_contention",
    )
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    processes: PositiveInt = 1
    nice: int = Field(default=10, ge=1, le=19)
    core: int | None = None
    host: NonNegativeInt = 0

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the competitor run."""
        return run.competitors("busy", self.processes, self.nice, self.core, 1.0)

    def perturb(self, job: Job) -> None:
        """Let the competitors run on the host, or on a rank's core."""
        job.host.hog_nice = self.nice
        if self.core is None:
            job.host.hogs[self.host] = self.processes
        else:
            job.host.pinned_hogs[self.core] = self.processes


class HiddenSlowRead(Decoy):
    """Storage slower than before, but still faster than the job uses batches up."""

    name: ClassVar[str] = "hidden_slow_read"
    looks_like: ClassVar[tuple[str, ...]] = ("storage_fetch_stall",)
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    megabytes_per_s: PositiveFloat

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Turn the storage's bandwidth down a little."""
        return run.knobs.turned(storage_bytes_per_s=self.megabytes_per_s * 1e6)

    def perturb(self, job: Job) -> None:
        """Slow every worker's reads."""
        job.loader.storage_bytes_per_s = round(self.megabytes_per_s * 10**6)


class CheapPeriodicCheckpoint(Decoy):
    """A small checkpoint every few steps, written to the page cache.

    A simulated one writes `megabytes`.
    """

    name: ClassVar[str] = "cheap_periodic_checkpoint"
    looks_like: ClassVar[tuple[str, ...]] = ("sync_checkpoint",)
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    every: PositiveInt = 10
    megabytes: PositiveFloat = 1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Write a checkpoint every `every` steps."""
        return run.knobs.turned(checkpoint_every=float(self.every))

    def perturb(self, job: Job) -> None:
        """Save little."""
        job.checkpoint.every = self.every
        job.checkpoint.bytes = round(self.megabytes * 10**6)
