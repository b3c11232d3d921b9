"""A rank whose memory and GPU are on different sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.simulated import SimulatedFault
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.sim.job import Job


class NumaMisplacement(SimulatedFault):
    """A rank whose memory and GPU are on different sockets.

    Mechanism: launches, copies and the loader's memory cross the link between the sockets.
    Source: byteps issue 250 (1.7 % and less variance after binding).
    """

    cause: ClassVar[str] = "numa_misplacement"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    ranks: tuple[NonNegativeInt, ...] = Field(min_length=1)

    def perturb(self, job: Job) -> None:
        """Move the ranks' memory to the other socket."""
        job.host.remote_memory = self.ranks

    def locus(self, topology: Topology) -> Locus:
        """The ranks."""
        return Locus(scope="rank", ranks=self.ranks)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks."""
        return tuple(p.rank for p in topology.ranks if p.rank not in self.ranks)
