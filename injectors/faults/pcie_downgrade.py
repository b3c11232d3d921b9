"""A GPU whose PCIe link runs at a lower generation or width under load."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from injectors.faults.simulated import OneGpuFault
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class PcieDowngrade(OneGpuFault):
    """A GPU whose PCIe link runs at a lower generation or width under load.

    Mechanism: copies between host and device are slower on this rank alone.
    Source: Minder (NSDI 2025), 6.6 % of faults.
    """

    cause: ClassVar[str] = "pcie_downgrade"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    rank: NonNegativeInt = 0
    generation: PositiveInt = 1
    width: PositiveInt = 16

    def perturb(self, job: Job) -> None:
        """Train the link down."""
        usual = job.machine.gpu.pcie_generation if job.machine.gpu else self.generation
        job.gpus.pcie_generation[self.rank] = self.generation
        job.gpus.pcie_width[self.rank] = self.width
        job.gpus.pcie_q16[self.rank] = (ONE * self.width // 16) >> (usual - self.generation)
