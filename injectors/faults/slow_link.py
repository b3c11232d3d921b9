"""One slow link in the all-reduce ring."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run
from injectors.faults.network_congestion import SENT
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

NAMED_HOSTS = 4  # up to so many the path of each pair has a name, see injectors.sim.public


def path_misfit(scenario: Scenario, rank: int, peer: int | None) -> str | None:
    """Why a simulated job's path between two ranks' hosts can't be blamed; None if it can."""
    places = scenario.places
    if peer is None or max(rank, peer) >= places.ranks:
        return f"must name the rank at the other end, peer, below {places.ranks}, got {peer}"
    if places.hosts > NAMED_HOSTS:
        return f"paths have names up to {NAMED_HOSTS} hosts, got {places.hosts}"
    apart = abs(places.host(rank) - places.host(peer))
    if apart not in (1, places.hosts - 1):
        return f"rank and peer must be on neighbouring hosts, got {(rank, peer)}"
    return None


class SlowLink(Fault):
    """Limit the bandwidth of one rank's link, or of the path between two ranks' hosts.

    Mechanism: a token bucket on both ends of the rank's network interface; with a `peer`, a
    limit on what the two interfaces send to each other.
    Source: Greyhound (USENIX ATC 2025), communication fail-slows.
    """

    cause: ClassVar[str] = "slow_link"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    backward_alone: ClassVar[bool] = True
    acceptable: ClassVar[tuple[str, ...]] = ("nic_degraded",)
    needs: ClassVar[tuple[str, ...]] = ("network_shaping",)
    least_ranks: ClassVar[int] = 2
    least_hosts: ClassVar[int] = 2
    rank: NonNegativeInt
    rate_mbit_per_s: PositiveFloat
    peer: NonNegativeInt | None = None

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Shape the link of the rank."""
        network = run.network
        if self.peer is None:
            return network.shaped(self.rank, self.rate_mbit_per_s)
        here, there = network.place(self.rank), network.place(self.peer)
        return network.shaped_path(here, there, self.rate_mbit_per_s)

    def misfit(self, scenario: Scenario) -> str | None:
        """Of three hosts or more, an interface that is slow for all is no slow link."""
        if scenario.hosts < 3:
            return None if self.peer is None else "a peer needs at least 3 hosts"
        if self.peer is None or not 0 <= self.peer < scenario.ranks:
            return f"must name the rank at the other end, peer, below {scenario.ranks}"
        if scenario.host(self.rank) == scenario.host(self.peer):
            return f"rank and peer must be on different hosts, got {(self.rank, self.peer)}"
        return None

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The path must be one that a ring takes, and have a name."""
        return path_misfit(scenario, self.rank, self.peer)

    def locus(self, topology: Topology) -> Locus:
        """The link that ends at the rank; of two ranks or hosts it is the one between them."""
        ends = {self.rank} if self.peer is None else {self.rank, self.peer}
        names = [link.name for link in topology.links if ends <= set(link.ranks)]
        return Locus(scope="link", links=tuple(names))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank of the ring waits for its slowest link."""
        return tuple(place.rank for place in topology.ranks)

    def perturb(self, job: Job) -> None:
        """Slow the path of two hosts, or all paths of one."""
        places, usual = job.places, job.machine.nic_bytes_per_s
        left = round(self.rate_mbit_per_s * 125_000) * ONE // usual
        here = places.host(self.rank)
        others = range(places.hosts) if self.peer is None else [places.host(self.peer)]
        for other in others:
            if other != here:
                job.network.link_q16[min(here, other), max(here, other)] = left

    def witness(self) -> tuple[str, str]:
        """Collectives of the same bytes take longer on all ranks, while bytes lie queued."""
        return (
            f"""
            WITH now AS (SELECT rank, avg(completed_ns - created_ns) AS t FROM collectives
                         GROUP BY rank),
                 then_ AS (SELECT rank, avg(completed_ns - created_ns) AS t
                           FROM reference.collectives GROUP BY rank)
            SELECT (SELECT min(now.t / then_.t) > 1.15 FROM now JOIN then_ USING (rank))
               AND (SELECT count(*) FROM collectives)
                   < 1.5 * (SELECT count(*) FROM reference.collectives)
               AND (SELECT max(sent.bytes / before.bytes) < 1.25 FROM {SENT.format("")} AS sent
                    JOIN {SENT.format("reference.")} AS before USING (rank))
               AND (SELECT max(queued) FROM (SELECT avg(send_queue_bytes) AS queued FROM network
                                             GROUP BY rank))
                   > 1.5 * (SELECT avg(send_queue_bytes) + 1000 FROM reference.network)
               AND (SELECT coalesce(sum(cpu_ns), 0)
                           / (SELECT max(time_ns) - min(time_ns) FROM host)
                    FROM processes WHERE role = 'other' AND name <> 'system')
                   < 0.15 + (SELECT coalesce(sum(cpu_ns), 0)
                                    / (SELECT max(time_ns) - min(time_ns) FROM reference.host)
                             FROM reference.processes WHERE role = 'other' AND name <> 'system')
            """,
            "collectives of unchanged number and size take longer on every rank while bytes wait in"
            " the send queue, and nobody else takes the interfaces or the ranks' cores",
        )
