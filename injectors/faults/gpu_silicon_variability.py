"""One GPU that is slower than its peers by nature."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from injectors.faults.simulated import OneGpuFault
from injectors.sim.job import ONE
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class GpuSiliconVariability(OneGpuFault):
    """One GPU that is slower than its peers by nature.

    Mechanism: the same model needs more voltage for the same clock and runs lower for good.
    Source: arXiv 2208.11035v3, 8 % on average and 22 % at most.
    """

    cause: ClassVar[str] = "gpu_silicon_variability"
    simulated: ClassVar[tuple[str, ...] | None] = (*TRANSFORMERS, "vision", "diffusion")
    rank: NonNegativeInt = 0
    speed: float = Field(gt=0.5, lt=1)

    def perturb(self, job: Job) -> None:
        """Slow the rank's GPU down."""
        job.gpus.silicon_q16[self.rank] = round(self.speed * ONE)
