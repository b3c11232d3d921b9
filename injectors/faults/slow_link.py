"""One slow link in the all-reduce ring."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run


class SlowLink(Fault):
    """Limit the bandwidth of one rank's link.

    Mechanism: a token bucket on both ends of the rank's network interface.
    Source: Greyhound (USENIX ATC 2025), communication fail-slows.
    """

    cause: ClassVar[str] = "slow_link"
    acceptable: ClassVar[tuple[str, ...]] = ("nic_degraded",)
    needs: ClassVar[tuple[str, ...]] = ("network_shaping",)
    rank: NonNegativeInt
    rate_mbit_per_s: PositiveFloat

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Shape the link of the rank."""
        return run.network.shaped(self.rank, self.rate_mbit_per_s)

    def locus(self, topology: Topology) -> Locus:
        """The link that ends at the rank; of two ranks it is the one between them."""
        names = [link.name for link in topology.links if self.rank in link.ranks]
        return Locus(scope="link", links=tuple(names))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank of the ring waits for its slowest link."""
        return tuple(place.rank for place in topology.ranks)

    def witness(self) -> tuple[str, str]:
        """Collectives of the same bytes take longer on all ranks, while bytes lie queued."""
        return (
            """
            WITH now AS (SELECT rank, avg(completed_ns - created_ns) AS t FROM collectives
                         GROUP BY rank),
                 then_ AS (SELECT rank, avg(completed_ns - created_ns) AS t
                           FROM reference.collectives GROUP BY rank)
            SELECT (SELECT min(now.t / then_.t) > 1.15 FROM now JOIN then_ USING (rank))
               AND (SELECT max(queued) FROM (SELECT avg(send_queue_bytes) AS queued FROM network
                                             GROUP BY rank))
                   > 1.5 * (SELECT avg(send_queue_bytes) + 1000 FROM reference.network)
            """,
            "collectives of unchanged size take longer on every rank while bytes wait in the"
            " send queue",
        )
