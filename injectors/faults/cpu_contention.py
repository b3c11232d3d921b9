"""Other processes that take the ranks' cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, elsewhere, host_or_job, others, rank_or_job
from injectors.faults.monitoring_interference import POLLERS
from injectors.sim.job import ONE
from injectors.sim.names import SERVING, TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class CpuContention(Fault):
    """Let busy processes compete for the ranks' cores.

    Mechanism: endless computation at ordinary priority, on one core or on all; `duty` is the
    share of time that they run. In a simulated job they are on all cores of a `host`.
    Source: Greyhound (USENIX ATC 2025), CPU contention on shared hosts.
    """

    cause: ClassVar[str] = "cpu_contention_colocated"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    processes: PositiveInt
    core: NonNegativeInt | None = None
    host: NonNegativeInt | None = None
    duty: float = Field(default=1.0, gt=0, le=1)

    def misfit(self, scenario: Scenario) -> str | None:
        """A job that runs for real has one machine."""
        return None if self.host is None else "host is for simulated jobs alone, name a core"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the competitors run."""
        return run.competitors("busy", self.processes, 0, self.core, self.duty)

    def locus(self, topology: Topology) -> Locus:
        """The host, the rank whose core is taken, or the whole job."""
        if self.host is not None:
            return host_or_job(topology, self.host)
        return rank_or_job(topology, self.core)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for those whose cores are taken."""
        if self.host is not None:
            return elsewhere(topology, self.host)
        return others(topology, self.core)

    def perturb(self, job: Job) -> None:
        """Put the competitors on the rank's core, on a host or on all hosts."""
        job.host.hog_duty_q16 = round(self.duty * ONE)
        if self.core is not None:
            job.host.pinned_hogs[self.core] = self.processes
        else:
            hosts = range(job.places.hosts) if self.host is None else [self.host]
            job.host.hogs.update(dict.fromkeys(hosts, self.processes))

    def witness(self) -> tuple[str, str]:
        """Others use the CPU at ordinary priority, and waiting for it is what a rank lost."""
        steps = """(SELECT count(*) FROM {0}steps s WHERE s.rank = p.rank
                    AND start_ns < (SELECT max(time_ns) FROM {0}processes))"""
        waiting = f"""(SELECT rank, sum(run_delay_ns) * 1.0 / {steps} AS ns,
                              sum(run_delay_ns) / sum(cpu_ns) AS share
                       FROM {{0}}processes p WHERE role = 'rank' GROUP BY rank)"""
        busy = f"""(SELECT coalesce(sum(cpu_ns), 0)
                           / (SELECT max(time_ns) - min(time_ns) FROM {{0}}host)
                    FROM {{0}}processes WHERE role = 'other' AND nice <= 0 AND name <> 'system'
                                          AND process NOT IN {POLLERS})"""
        return (
            f"""
            SELECT {busy.format("")} > {busy.format("reference.")} + 0.15
               AND (SELECT max(now.share - was.share) > 0.15
                           AND max(now.ns - was.ns)
                               > 0.4 * ((SELECT avg(duration_ns) FROM steps)
                                        - (SELECT avg(duration_ns) FROM reference.steps))
                    FROM {waiting.format("")} AS now JOIN {waiting.format("reference.")} AS was
                    USING (rank))
            """,
            "processes outside the job use more of the CPU than in the reference, at ordinary"
            " priority, and a rank's waits for a core make up what its steps have lost",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same, the wait as a share of the CPU time that the job got."""
        return (
            f"""
            SELECT (SELECT coalesce(sum(cpu_ns), 0) FROM processes
                    WHERE role = 'other' AND nice <= 0 AND name <> 'system'
                      AND process NOT IN {POLLERS.format("")})
                   > 0.3 * (SELECT max(time_ns) - min(time_ns) FROM host)
               AND (SELECT sum(run_delay_ns) > 0.2 * sum(cpu_ns) FROM processes
                    WHERE role <> 'other')
            """,
            "processes outside the job use a third of a core or more while its own wait runnable",
        )
