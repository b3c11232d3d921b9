"""Two ranks bound to the same cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.simulated import SimulatedFault
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.sim.job import Job


class RankAffinityOverlap(SimulatedFault):
    """Two ranks bound to the same cores.

    Mechanism: a launcher's binding gives two ranks one core, which their threads share.
    Source: own measurements, both ranks on one core: 1.73x.
    """

    cause: ClassVar[str] = "rank_affinity_overlap"
    simulated: ClassVar[tuple[str, ...] | None] = (
        "ddp_transformer",
        "tensor_parallel_transformer",
        "moe_transformer",
        *LOADER_BOUND,
    )
    least_ranks: ClassVar[int] = 2
    ranks: tuple[NonNegativeInt, ...] = Field(min_length=2)

    def perturb(self, job: Job) -> None:
        """Let the ranks share a core."""
        job.host.shared_core = self.ranks

    def locus(self, topology: Topology) -> Locus:
        """The ranks that share."""
        return Locus(scope="rank", ranks=self.ranks)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks."""
        return tuple(p.rank for p in topology.ranks if p.rank not in self.ranks)
