"""Waits that move from one phase of a step to another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from injectors.faults.base import Decoy, Run

if TYPE_CHECKING:
    from injectors.sim.job import Job


class CostMovesToNextSync(Decoy):
    """The loop asks for its batch where it first needs it: in the forward pass.

    The wait for data leaves `data_wait_ns` for `forward_ns`, and the step takes as long as
    before. It shows most in a job that does wait for data. In a simulated job it is the wait for
    the last gradients that leaves `backward_ns` for `optimizer_ns`.
    """

    name: ClassVar[str] = "cost_moves_to_next_sync"
    looks_like: ClassVar[tuple[str, ...]] = ("host_device_sync", "unfused_kernels")
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    simulated: ClassVar[tuple[str, ...] | None] = ("ddp_transformer", "diffusion")
    least_hosts: ClassVar[int] = 2

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Fetch late."""
        return run.knobs.turned(late_fetch=1.0)

    def perturb(self, job: Job) -> None:
        """Wait late."""
        job.framework.late_wait = True
