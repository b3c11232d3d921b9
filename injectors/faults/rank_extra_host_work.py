"""Python work that one rank does and the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import others, rank_or_job
from injectors.faults.simulated import SimulatedFault
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class RankExtraHostWork(SimulatedFault):
    """Python work that one rank does and the others do not.

    Mechanism: rank 0 alone evaluates, logs or augments in every step, its launches come late, and
    the others wait in the next collective.
    Source: own measurements, 30 ms on one of two ranks: 1.96x.
    """

    cause: ClassVar[str] = "rank_extra_host_work"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    rank: NonNegativeInt = 0
    extra_ms: PositiveFloat

    def perturb(self, job: Job) -> None:
        """Let the rank work longer between its launches."""
        job.host.extra_ns[self.rank] = round(self.extra_ms * 10**6)

    def locus(self, topology: Topology) -> Locus:
        """The rank."""
        return rank_or_job(topology, self.rank)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for it."""
        return others(topology, self.rank)
