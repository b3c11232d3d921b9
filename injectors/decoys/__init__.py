"""Odd but healthy: things that look like a cause and are measured to cost nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from injectors.decoys.moved_waits import CostMovesToNextSync
from injectors.decoys.waiting import BusyWaitingCpu, LastArriver, WaitingSyncHotspot
from injectors.faults.base import Decoy, Run


class SlowFirstStep(Decoy):
    """The recording begins with the job's first step, which compiles or starts workers.

    A cost paid once is no slower job: its trials, like all, are of the steps after it.
    """

    name: ClassVar[str] = "slow_first_step"
    looks_like: ClassVar[tuple[str, ...]] = ("recompilation_churn", "storage_fetch_stall")

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Begin the recorded window with a first step."""
        return run.knobs.turned(cold_start=1.0)


class LowPriorityCompetitor(Decoy):
    """A busy process that yields to the job because of its nice value."""

    name: ClassVar[str] = "low_priority_competitor"
    looks_like: ClassVar[tuple[str, ...]] = (
        "cpu_contention_colocated",
        "memory_bandwidth_contention",
    )
    processes: PositiveInt = 1
    nice: int = Field(default=10, ge=1, le=19)
    core: int | None = None

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the competitor run."""
        return run.competitors("busy", self.processes, self.nice, self.core, 1.0)


class HiddenSlowRead(Decoy):
    """Storage slower than before, but still faster than the job uses batches up."""

    name: ClassVar[str] = "hidden_slow_read"
    looks_like: ClassVar[tuple[str, ...]] = ("storage_fetch_stall",)
    megabytes_per_s: PositiveFloat

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Turn the storage's bandwidth down a little."""
        return run.knobs.turned(storage_bytes_per_s=self.megabytes_per_s * 1e6)


class CheapPeriodicCheckpoint(Decoy):
    """A small checkpoint every few steps, written to the page cache."""

    name: ClassVar[str] = "cheap_periodic_checkpoint"
    looks_like: ClassVar[tuple[str, ...]] = ("sync_checkpoint",)
    every: PositiveInt = 10

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Write a checkpoint every `every` steps."""
        return run.knobs.turned(checkpoint_every=float(self.every))


DECOYS: dict[str, type[Decoy]] = {
    decoy.name: decoy
    for decoy in (
        SlowFirstStep,
        LowPriorityCompetitor,
        HiddenSlowRead,
        CheapPeriodicCheckpoint,
        CostMovesToNextSync,
        LastArriver,
        WaitingSyncHotspot,
        BusyWaitingCpu,
    )
}
