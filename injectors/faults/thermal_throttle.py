"""One GPU that gets too hot and clocks down."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from injectors.faults.simulated import AMONG_PEERS, OneGpuFault
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class ThermalThrottle(OneGpuFault):
    """One GPU that gets too hot and clocks down.

    Mechanism: a worse heat path and warm air bring the device to its limit, and it lowers its
    clock until the temperature holds.
    Source: Greyhound (USENIX ATC 2025), one GPU 20 % slower; tensorflow issue 40042.
    """

    cause: ClassVar[str] = "thermal_throttle"
    simulated: ClassVar[tuple[str, ...] | None] = (*TRANSFORMERS, "vision", "diffusion")
    rank: NonNegativeInt = 0
    inlet_c: PositiveInt = 38
    resistance_mc_per_w: PositiveInt = Field(default=95, description="1/1000 degree a watt")

    def perturb(self, job: Job) -> None:
        """Cool the rank's GPU badly."""
        job.gpus.inlet_c[self.rank] = self.inlet_c
        job.gpus.resistance_mc_per_w[self.rank] = self.resistance_mc_per_w

    def audit_witness(self) -> tuple[str, str]:
        """The device says so itself; its peers are the measure of its clock."""
        return (
            f"""
            SELECT count(*) > 0 FROM {AMONG_PEERS}
            WHERE hot > 0.5 AND temperature > 75 AND clock < 0.985 * others_clock
            """,
            "one device says that heat holds its clock down, which is lower than its peers'",
        )
