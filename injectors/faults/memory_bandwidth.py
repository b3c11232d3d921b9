"""A neighbour that streams through memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, elsewhere, host_or_job
from injectors.sim.job import ONE
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class MemoryBandwidth(Fault):
    """Let processes on other cores than the ranks' stream through arrays beyond the cache.

    Mechanism: the ranks keep their cores but wait for memory; `duty` is the share of time
    that the neighbours run. Of simulated hosts one may be named.
    Source: Bubble-Up (MICRO 2011), interference through shared memory.
    """

    cause: ClassVar[str] = "memory_bandwidth_contention"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    processes: PositiveInt = 1
    core: NonNegativeInt | None = None
    host: NonNegativeInt | None = None
    duty: float = Field(default=1.0, gt=0, le=1)

    def misfit(self, scenario: Scenario) -> str | None:
        """A job that runs for real has one machine."""
        return None if self.host is None else "host is for simulated jobs alone, name a core"

    def locus(self, topology: Topology) -> Locus:
        """The host, since its memory is shared by all who are on it."""
        return host_or_job(topology, self.host)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks of other hosts, which wait for it."""
        return elsewhere(topology, self.host)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the neighbours stream."""
        return run.competitors("memory", self.processes, 0, self.core, self.duty)

    def perturb(self, job: Job) -> None:
        """Let the host's memory-bound work take longer."""
        hosts = range(job.places.hosts) if self.host is None else [self.host]
        factor = ONE + round(self.processes * self.duty * ONE) // 4
        job.host.memory_traffic_q16.update(dict.fromkeys(hosts, factor))

    def witness(self) -> tuple[str, str]:
        """The same step needs more CPU time although the ranks are not kept waiting."""
        return (
            """
            WITH now AS (SELECT rank, sum(cpu_ns) / (SELECT count(*) FROM steps
                                WHERE start_ns < (SELECT max(time_ns) FROM processes)) AS cpu,
                                sum(run_delay_ns) / sum(cpu_ns) AS waiting
                         FROM processes WHERE role = 'rank' GROUP BY rank),
                 then_ AS (SELECT rank, sum(cpu_ns) / (SELECT count(*) FROM reference.steps
                                WHERE start_ns < (SELECT max(time_ns) FROM reference.processes))
                                  AS cpu,
                                sum(run_delay_ns) / sum(cpu_ns) AS waiting
                           FROM reference.processes WHERE role = 'rank' GROUP BY rank)
            SELECT (SELECT sum(cpu_ns) / (SELECT max(time_ns) - min(time_ns) FROM host)
                    FROM processes WHERE role = 'other' AND name <> 'system')
                   > 0.15 + (SELECT coalesce(sum(cpu_ns), 0)
                                    / (SELECT max(time_ns) - min(time_ns) FROM reference.host)
                             FROM reference.processes WHERE role = 'other' AND name <> 'system')
               AND (SELECT sum(now.cpu) > 1.04 * sum(then_.cpu)
                           AND max(now.waiting - then_.waiting) < 0.12
                    FROM now JOIN then_ USING (rank))
            """,
            "a process on another core is busy, and the same steps cost the ranks more CPU time"
            " without any wait for a core",
        )
