"""A host whose cores run slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.base import elsewhere, host_or_job
from injectors.faults.simulated import SimulatedFault
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class CpuLowFrequency(SimulatedFault):
    """A host whose cores run slowly.

    Mechanism: power saving or heat holds the clock down, so all host work takes longer while
    nobody waits for a core.
    Source: tt-metal issue 5281.
    """

    cause: ClassVar[str] = "cpu_low_frequency"
    simulated: ClassVar[tuple[str, ...] | None] = (
        "ddp_transformer",
        "vision",
        "diffusion",
        *SERVING,
    )
    host: NonNegativeInt = 0
    speed: float = Field(gt=0, lt=1, description="of the host's cores over nominal")

    def perturb(self, job: Job) -> None:
        """Slow the host's cores down."""
        job.host.frequency_q16[self.host] = round(self.speed * ONE)

    def locus(self, topology: Topology) -> Locus:
        """The host, or the whole job where it has no other."""
        return host_or_job(topology, self.host)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks of other hosts, which wait for it."""
        return elsewhere(topology, self.host)
