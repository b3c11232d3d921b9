"""A GPU whose NVLinks are down or partly down."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from injectors.faults.simulated import OneGpuFault
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class NvlinkDegraded(OneGpuFault):
    """A GPU whose NVLinks are down or partly down.

    Mechanism: its traffic takes the links that are left, or PCIe, and every ring through it slows.
    Source: azhpc-diagnostics issue 73, dstack issue 1167.
    """

    cause: ClassVar[str] = "nvlink_degraded"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    rank: NonNegativeInt = 0
    bandwidth_left: float = Field(ge=0, lt=1, description="0: over PCIe")

    def perturb(self, job: Job) -> None:
        """Take links away."""
        job.network.nvlink_q16[self.rank] = round(self.bandwidth_left * ONE)
