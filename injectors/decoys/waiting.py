"""Ranks that wait in odd ways for what they have to wait for anyway."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from injectors.faults.base import Decoy, Run


class LastArriver(Decoy):
    """The stages of a pipeline add up the loss at the end of a step; the first always comes last.

    It only waits for the gradients of the stage after it, whose own work was done earlier.
    """

    name: ClassVar[str] = "last_arriver"
    looks_like: ClassVar[tuple[str, ...]] = ("data_straggler_rank", "nic_degraded")
    workloads: ClassVar[tuple[str, ...]] = ("pipeline",)
    least_ranks: ClassVar[int] = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Tell all stages the loss of every step."""
        return run.knobs.turned(loss_shared=1.0)


class WaitingSyncHotspot(Decoy):
    """The stages of a pipeline meet at the end of every step.

    The later stages spend their idle time in that call instead of in the next step's receive.
    """

    name: ClassVar[str] = "waiting_sync_hotspot"
    looks_like: ClassVar[tuple[str, ...]] = ("host_device_sync", "excessive_small_collectives")
    workloads: ClassVar[tuple[str, ...]] = ("pipeline",)
    least_ranks: ClassVar[int] = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the stages meet."""
        return run.knobs.turned(step_barrier=1.0)


class BusyWaitingCpu(Decoy):
    """Ranks ask in a loop whether a collective is done, and yield the core in between.

    Their core is busy all the time with nothing that anybody else would need it for.
    """

    name: ClassVar[str] = "busy_waiting_cpu"
    looks_like: ClassVar[tuple[str, ...]] = ("thread_oversubscription", "cpu_contention_colocated")
    workloads: ClassVar[tuple[str, ...]] = ("mixture_of_experts", "recommendation")
    least_ranks: ClassVar[int] = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the ranks ask instead of sleep."""
        return run.knobs.turned(busy_poll=1.0)
