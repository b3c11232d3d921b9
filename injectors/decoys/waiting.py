"""Ranks that wait in odd ways for what they have to wait for anyway."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Decoy, Run
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class LastArriver(Decoy):
    """The stages of a pipeline add up the loss at the end of a step; the first always comes last.

    It only waits for the gradients of the stage after it, whose own work was done earlier.
    """

    name: ClassVar[str] = "last_arriver"
    looks_like: ClassVar[tuple[str, ...]] = ("data_straggler_rank", "nic_degraded")
    workloads: ClassVar[tuple[str, ...]] = ("pipeline",)
    simulated: ClassVar[tuple[str, ...] | None] = ("pipeline_transformer",)
    least_ranks: ClassVar[int] = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Tell all stages the loss of every step."""
        return run.knobs.turned(loss_shared=1.0)

    def perturb(self, job: Job) -> None:
        """Average the loss over all stages."""
        job.framework.small_collectives = 1


class WaitingSyncHotspot(Decoy):
    """The stages of a pipeline meet at the end of every step.

    The later stages spend their idle time in that call instead of in the next step's receive. In
    a simulated job the host reads a few numbers back, and waits there for what it had launched.
    """

    name: ClassVar[str] = "waiting_sync_hotspot"
    looks_like: ClassVar[tuple[str, ...]] = ("host_device_sync", "excessive_small_collectives")
    workloads: ClassVar[tuple[str, ...]] = ("pipeline",)
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    reads: PositiveInt = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the stages meet."""
        return run.knobs.turned(step_barrier=1.0)

    def perturb(self, job: Job) -> None:
        """Read a few numbers back in each step."""
        job.framework.read_backs = self.reads


class BusyWaitingCpu(Decoy):
    """Ranks ask in a loop whether a collective is done, and yield the core in between.

    Their core is busy all the time with nothing that anybody else would need it for. In a
    simulated job so many further threads of each rank do.
    """

    name: ClassVar[str] = "busy_waiting_cpu"
    looks_like: ClassVar[tuple[str, ...]] = ("thread_oversubscription", "cpu_contention_colocated")
    workloads: ClassVar[tuple[str, ...]] = ("mixture_of_experts", "recommendation")
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    threads: PositiveInt = 1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the ranks ask instead of sleep."""
        return run.knobs.turned(busy_poll=1.0)

    def perturb(self, job: Job) -> None:
        """Let threads of each rank ask in a loop."""
        job.host.spinning = self.threads
