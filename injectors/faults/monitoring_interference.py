"""A monitoring agent that takes the ranks' CPU time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, elsewhere, host_or_job, others, rank_or_job
from injectors.sim.names import SERVING, TRAINING

# An agent reads this much of /proc per CPU second, what only computes reads nothing; `python`
# may be whatever records the job's own signals.
POLLERS = """(SELECT process FROM {0}processes WHERE role = 'other' GROUP BY process
                     HAVING sum(read_bytes) > 1e-4 * sum(cpu_ns))"""
POLLED = f"""(SELECT coalesce(sum(cpu_ns), 0) FROM {{0}}processes WHERE role = 'other'
                    AND name NOT IN ('system', 'python', 'python3') AND process IN
                    {POLLERS})"""

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class MonitoringInterference(Fault):
    """Let an agent collect what /proc says of every process, over and over.

    Mechanism: it runs at ordinary priority on one of the ranks' cores, or on all, and reads
    memory maps of which each read stops the process's own changes to them; `duty` is the
    share of time that it runs. In a simulated job agents of a `host` hold the driver's lock.
    Source: dcgm-exporter issue 311, an exporter at 131 % CPU.
    """

    cause: ClassVar[str] = "monitoring_interference"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    acceptable: ClassVar[tuple[str, ...]] = ("cpu_contention_colocated",)
    agents: PositiveInt = 1
    core: NonNegativeInt | None = None
    host: NonNegativeInt | None = None
    duty: float = Field(default=1.0, gt=0, le=1)

    def misfit(self, scenario: Scenario) -> str | None:
        """A job that runs for real has one machine."""
        return None if self.host is None else "host is for simulated jobs alone, name a core"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the agents collect."""
        return run.competitors("poll", self.agents, 0, self.core, self.duty)

    def locus(self, topology: Topology) -> Locus:
        """The host, the rank whose core is taken, or the whole job."""
        if self.host is not None:
            return host_or_job(topology, self.host)
        return rank_or_job(topology, self.core)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for those that are held up."""
        if self.host is not None:
            return elsewhere(topology, self.host)
        return others(topology, self.core)

    def perturb(self, job: Job) -> None:
        """Let agents hold the driver's lock four times a second."""
        places, hosts = job.places, tuple(range(job.places.hosts))
        if self.host is not None or self.core is not None:
            hosts = (places.host(self.core or 0) if self.host is None else self.host,)
        job.host.poll_every_ns = 250_000_000
        job.host.poll_ns = round(self.agents * self.duty * 25_000_000)
        job.host.polled_hosts = hosts

    def witness(self) -> tuple[str, str]:
        """A process that reads and reads uses the CPU while the job's processes wait to run."""
        waiting = """(SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) FROM {}processes
                      WHERE role <> 'other')"""
        return (
            f"""
            SELECT {POLLED.format("")} > 0.04 * (SELECT max(time_ns) - min(time_ns) FROM host)
               AND {waiting.format("")} > {waiting.format("reference.")} + 0.03
            """,
            "a process outside the job reads at over 100 kB per CPU second while the job's wait"
            " runnable",
        )
