"""A link that drops packets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run
from injectors.sim.names import TRAINING

SEGMENT_BYTES = 1448  # of TCP over Ethernet

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class LossyLink(Fault):
    """Drop packets at random on one rank's link.

    Mechanism: a firewall rule with a random match, in both directions; TCP sends again what
    is lost, after a pause and with a smaller window.
    Source: pilot recordings, 2 and 10 % loss made steps 1.12 and 16 times longer.
    """

    cause: ClassVar[str] = "lossy_link"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    needs: ClassVar[tuple[str, ...]] = ("network_shaping", "packet_loss")
    least_ranks: ClassVar[int] = 2
    least_hosts: ClassVar[int] = 2
    rank: NonNegativeInt
    loss_fraction: float = Field(gt=0, lt=0.5)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Drop packets."""
        return run.network.lossy(self.rank, self.loss_fraction)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """TCP must join the hosts, and be two: of three, the rank's host would be to blame."""
        if scenario.build_workload().model_dump().get("transport") != "socket":
            return "TCP sends again what is lost: needs transport socket"
        hosts = scenario.places.hosts
        return None if hosts == 2 else f"needs 2 hosts, with one link between them, got {hosts}"

    def locus(self, topology: Topology) -> Locus:
        """The link that ends at the rank; of two ranks it is the one between them."""
        names = [link.name for link in topology.links if self.rank in link.ranks]
        return Locus(scope="link", links=tuple(names))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank of the ring waits for its slowest link."""
        return tuple(place.rank for place in topology.ranks)

    def perturb(self, job: Job) -> None:
        """Drop packets on the paths of the rank's host."""
        here = job.places.host(self.rank)
        for other in range(job.places.hosts):
            if other != here:
                pair = (min(here, other), max(here, other))
                job.network.loss_ppm[pair] = round(self.loss_fraction * 10**6)

    def witness(self) -> tuple[str, str]:
        """TCP sends segments again, far more often than in the reference."""
        resent = f"(SELECT sum(retransmits) * {SEGMENT_BYTES}.0 / sum(tx_bytes) FROM {{}}network)"
        return (
            f"""
            SELECT (SELECT sum(retransmits) FROM network) >= 20
               AND {resent.format("")} > 0.004
               AND {resent.format("")} > 4 * {resent.format("reference.")}
               AND (SELECT avg(completed_ns - created_ns) FROM collectives)
                   > 1.05 * (SELECT avg(completed_ns - created_ns) FROM reference.collectives)
            """,
            "TCP sends over 0.4 % of its bytes again, at least four times the reference's share,"
            " and collectives take longer",
        )
