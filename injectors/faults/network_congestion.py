"""Other traffic on the job's own path."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run
from injectors.sim.job import Flows
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

# Bytes per step that an interface sends, and that the job's collectives account for.
SENT = """(SELECT rank, duration * avg(tx_bytes) * (count(*) - 1.0) / (max(time_ns) - min(time_ns))
                  AS bytes
           FROM {0}network, (SELECT avg(duration_ns) AS duration FROM {0}steps)
           GROUP BY rank, duration)"""
ASKED = """(SELECT sum(bytes) * 1.0 / (SELECT count(*) FROM {0}steps) FROM {0}collectives)"""


class NetworkCongestion(Fault):
    """Let another program send over a link of limited rate that the job's ranks use.

    Mechanism: `flows` TCP connections keep the link's queue filled, so the job's bytes wait
    behind them and get a part of the rate. In a simulated job the flows are other jobs' and come
    and go on the spine that all hosts share; then there is no `source`.
    Source: Greyhound (USENIX ATC 2025), congestion in 42 of 107 jobs on four nodes.
    """

    cause: ClassVar[str] = "network_congestion"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    backward_alone: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("network_shaping",)
    least_ranks: ClassVar[int] = 2
    least_hosts: ClassVar[int] = 2
    source: NonNegativeInt | None = 0
    target: NonNegativeInt = 1
    flows: PositiveInt = 1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the other program send."""
        assert self.source is not None
        return run.traffic(self.source, self.target, self.flows)

    def misfit(self, scenario: Scenario) -> str | None:
        """A link without limit is shared through the CPU, not through its rate."""
        if self.source is None:
            return "a spine is for simulated jobs alone: name a source"
        if scenario.link_mbit_per_s is None:
            return "congestion needs links of a limited rate: give link_mbit_per_s"
        ends = (self.source, self.target)
        if max(ends) >= scenario.ranks:
            return f"source and target must be below {scenario.ranks}, got {ends}"
        if scenario.interface(self.source) == scenario.interface(self.target):
            return f"source and target must have different interfaces, got {ends}"
        return None

    def locus(self, topology: Topology) -> Locus:
        """The link between the two, or the links of both where there is a switch; or all links."""
        if self.source is None:
            return Locus(scope="link", links=tuple(link.name for link in topology.links))
        ends = {self.source, self.target}
        between = [link.name for link in topology.links if ends <= set(link.ranks)]
        touched = [link.name for link in topology.links if ends & set(link.ranks)]
        return Locus(scope="link", links=tuple(between or touched))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank of the ring waits for its slowest link."""
        return tuple(place.rank for place in topology.ranks)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The flows of a simulated job have no ends of its own."""
        return None if self.source is None else f"source must be none, got {self.source}"

    def perturb(self, job: Job) -> None:
        """Share the spine with other jobs' flows for most of the time."""
        job.network.background = Flows(self.flows, 350_000_000, 500_000_000)

    def witness(self) -> tuple[str, str]:
        """An interface carries more than in the reference, for the same collectives, later."""
        return (
            f"""
            WITH took AS (SELECT rank, avg(completed_ns - created_ns) AS ns FROM collectives
                          GROUP BY rank),
                 had AS (SELECT rank, avg(completed_ns - created_ns) AS ns
                         FROM reference.collectives GROUP BY rank)
            SELECT (SELECT min(took.ns / had.ns) > 1.1 FROM took JOIN had USING (rank))
               AND (SELECT max(now.bytes / was.bytes) > 1.25 FROM {SENT.format("")} AS now
                    JOIN {SENT.format("reference.")} AS was USING (rank))
               AND {ASKED.format("")} < 1.05 * {ASKED.format("reference.")}
            """,
            "an interface sends over 25 % more bytes a step than in the reference, although the"
            " job asks for no more, and collectives take longer",
        )
