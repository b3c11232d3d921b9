"""Other processes that take the ranks' cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others, rank_or_job


class CpuContention(Fault):
    """Let busy processes compete for the ranks' cores.

    Mechanism: endless computation at ordinary priority, on one core or on all; `duty` is the
    share of time that they run.
    Source: Greyhound (USENIX ATC 2025), CPU contention on shared hosts.
    """

    cause: ClassVar[str] = "cpu_contention_colocated"
    processes: PositiveInt
    core: NonNegativeInt | None = None
    duty: float = Field(default=1.0, gt=0, le=1)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the competitors run."""
        return run.competitors("busy", self.processes, 0, self.core, self.duty)

    def locus(self, topology: Topology) -> Locus:
        """The rank whose core is taken, or the whole job."""
        return rank_or_job(topology, self.core)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one whose core is taken."""
        return others(topology, self.core)

    def witness(self) -> tuple[str, str]:
        """Others use the CPU at ordinary priority while the job's processes wait to run."""
        return (
            """
            WITH now AS (SELECT rank, sum(run_delay_ns) / sum(cpu_ns) AS waiting
                         FROM processes WHERE role = 'rank' GROUP BY rank),
                 then_ AS (SELECT rank, sum(run_delay_ns) / sum(cpu_ns) AS waiting
                           FROM reference.processes WHERE role = 'rank' GROUP BY rank),
                 busy AS (SELECT sum(cpu_ns) / (SELECT max(time_ns) - min(time_ns) FROM host)
                                 AS cores
                          FROM processes
                          WHERE role = 'other' AND nice <= 0 AND name <> 'system'),
                 before AS (SELECT sum(cpu_ns)
                                   / (SELECT max(time_ns) - min(time_ns) FROM reference.host)
                                   AS cores
                            FROM reference.processes
                            WHERE role = 'other' AND nice <= 0 AND name <> 'system')
            SELECT (SELECT busy.cores > coalesce(before.cores, 0) + 0.15 FROM busy, before)
               AND (SELECT max(now.waiting - then_.waiting) > 0.15
                    FROM now JOIN then_ USING (rank))
            """,
            "processes outside the job use more of the CPU than in the reference, at ordinary"
            " priority, while a rank waits longer for a core",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same, the wait as a share of the CPU time that the job got."""
        return (
            """
            SELECT (SELECT coalesce(sum(cpu_ns), 0) FROM processes
                    WHERE role = 'other' AND nice <= 0 AND name <> 'system')
                   > 0.05 * (SELECT max(time_ns) - min(time_ns) FROM host)
               AND (SELECT sum(run_delay_ns) > 0.2 * sum(cpu_ns) FROM processes
                    WHERE role <> 'other')
            """,
            "processes outside the job use the CPU while its own wait runnable",
        )
