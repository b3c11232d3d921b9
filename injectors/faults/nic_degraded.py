"""One host's network interface, slow for everybody."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class NicDegraded(Fault):
    """Limit all that one host sends and receives.

    Mechanism: a token bucket on the interface that all ranks of the host share, and on the
    switch's port that it is plugged into.
    Source: Minder (NSDI 2025), interfaces that drop out; nccl issue 1581, 1 for 10 Gbit/s.
    """

    cause: ClassVar[str] = "nic_degraded"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    backward_alone: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("network_shaping",)
    least_ranks: ClassVar[int] = 3
    least_hosts: ClassVar[int] = 3
    host: NonNegativeInt
    rate_mbit_per_s: PositiveFloat

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Shape the host's interface."""
        return run.network.shaped_interface(self.host, self.rate_mbit_per_s)

    def misfit(self, scenario: Scenario) -> str | None:
        """Of two hosts either interface, or the link between them, explains what is seen."""
        if scenario.hosts < 3:
            return f"one host's interface needs at least 3 hosts to be told, got {scenario.hosts}"
        if self.host >= scenario.hosts:
            return f"host must be below {scenario.hosts}, got {self.host}"
        return None

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The same of a simulated job, whose hosts follow from its machine."""
        hosts = scenario.places.hosts
        return None if self.host < hosts else f"host must be below {hosts}, got {self.host}"

    def locus(self, topology: Topology) -> Locus:
        """The host."""
        return Locus(scope="host", hosts=(f"host{self.host}",))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank of the ring waits for its slowest flow."""
        return tuple(place.rank for place in topology.ranks)

    def perturb(self, job: Job) -> None:
        """Slow the host's interfaces down."""
        usual = job.machine.nic_bytes_per_s
        job.network.nic_q16[self.host] = round(self.rate_mbit_per_s * 125_000) * ONE // usual

    def witness(self) -> tuple[str, str]:
        """Bytes queue on both sides of one host, and its flows carry no more than before."""
        queued = "(SELECT rank, avg(send_queue_bytes) AS bytes FROM {0}network GROUP BY rank)"
        return (
            f"""
            WITH took AS (SELECT rank, avg(completed_ns - created_ns) AS ns FROM collectives
                          GROUP BY rank),
                 had AS (SELECT rank, avg(completed_ns - created_ns) AS ns
                         FROM reference.collectives GROUP BY rank)
            SELECT (SELECT count(DISTINCT host) >= 3 FROM processes WHERE role = 'rank')
               AND (SELECT min(took.ns / had.ns) > 1.15 FROM took JOIN had USING (rank))
               AND (SELECT count(*) >= 2 FROM {queued.format("")} AS now
                    JOIN {queued.format("reference.")} AS was USING (rank)
                    WHERE now.bytes > 1.5 * was.bytes + 2000)
            """,
            "collectives take longer on every rank while bytes wait in the send queues of the"
            " host's interface and of the host that sends to it",
        )
