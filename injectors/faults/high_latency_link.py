"""A path between hosts that takes long for every message."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.simulated import SimulatedFault
from injectors.faults.slow_link import path_misfit
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class HighLatencyLink(SimulatedFault):
    """A path between hosts that takes long for every message.

    Mechanism: a detour or a busy middle box adds to the one-way time; bandwidth is as ever.
    Source: own measurements, 2 ms between two hosts: 1.62x.
    """

    cause: ClassVar[str] = "high_latency_link"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    least_hosts: ClassVar[int] = 2
    acceptable: ClassVar[tuple[str, ...]] = ("slow_link",)
    rank: NonNegativeInt = 0
    peer: NonNegativeInt
    latency_us: PositiveFloat

    def perturb(self, job: Job) -> None:
        """Add the latency to the path of the two ranks' hosts."""
        here, there = (job.places.host(rank) for rank in (self.rank, self.peer))
        job.network.latency_ns[min(here, there), max(here, there)] = round(self.latency_us * 1000)

    def locus(self, topology: Topology) -> Locus:
        """The path."""
        ends = {self.rank, self.peer}
        names = [link.name for link in topology.links if ends <= set(link.ranks)]
        return Locus(scope="link", links=tuple(names))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank waits."""
        return tuple(place.rank for place in topology.ranks)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The path must be one that a ring takes, and have a name."""
        return path_misfit(scenario, self.rank, self.peer)
