"""Other processes that take the ranks' cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cases.schema import JOB, Locus, Topology
from injectors.faults.base import Fault, Run


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
        if self.core is None or len(topology.ranks) == 1:
            return JOB
        return Locus(scope="rank", ranks=(self.core,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one whose core is taken."""
        if self.core is None:
            return ()
        return tuple(place.rank for place in topology.ranks if place.rank != self.core)

    def witness(self) -> tuple[str, str]:
        """Others use the CPU at ordinary priority while the job's processes wait to run."""
        return (
            """
            WITH now AS (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                         FROM processes WHERE role <> 'other'),
                 then_ AS (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                           FROM reference.processes WHERE role <> 'other')
            SELECT (SELECT coalesce(sum(cpu_ns), 0) FROM processes
                    WHERE role = 'other' AND nice <= 0 AND name <> 'system')
                   > 0.05 * (SELECT max(time_ns) - min(time_ns) FROM host)
               AND (SELECT now.waiting > then_.waiting + 0.08 FROM now, then_)
            """,
            "processes outside the job use the CPU while its own wait runnable",
        )
