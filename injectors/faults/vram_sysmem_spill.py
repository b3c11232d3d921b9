"""Device memory that the driver keeps in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.simulated import SimulatedFault
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class VramSysmemSpill(SimulatedFault):
    """Device memory that the driver keeps in host memory.

    Mechanism: instead of failing, the driver pages to the host, so part of the kernels' memory
    traffic crosses PCIe.
    Source: WSL issue 10452, kohya issue 1288 (driver 536.67).
    """

    cause: ClassVar[str] = "vram_sysmem_spill"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    share: float = Field(gt=0, lt=1, description="of memory traffic that crosses PCIe")

    def perturb(self, job: Job) -> None:
        """Fill device memory and send a share of the traffic over PCIe."""
        job.gpus.spill_q16 = round(self.share * ONE)
        job.gpus.memory_used_q16 = ONE
