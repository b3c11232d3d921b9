"""A rank's process that is stopped and continued."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others, rank_or_job
from injectors.sim.job import ONE
from injectors.sim.names import SERVING, TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class ProcessSuspended(Fault):
    """Stop one rank's process for a part of every period.

    Mechanism: SIGSTOP and SIGCONT in turn, as a debugger or a freezer does it; a stopped
    process is not runnable, so it waits for no CPU.
    Source: pilot recordings, 1.57 times slower when stopped for 40 % of the time.
    """

    cause: ClassVar[str] = "process_suspended"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    rank: NonNegativeInt = 0
    stopped_fraction: float = Field(gt=0, lt=1)
    period_s: PositiveFloat = 0.1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Stop and continue the process."""
        return run.suspended(self.rank, self.stopped_fraction, self.period_s)

    def locus(self, topology: Topology) -> Locus:
        """The rank that is stopped."""
        return rank_or_job(topology, self.rank)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for it."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Stop the rank."""
        job.host.suspended_q16[self.rank] = round(self.stopped_fraction * ONE)
        job.host.suspended_period_ns = round(self.period_s * 10**9)

    def witness(self) -> tuple[str, str]:
        """Computing takes longer on one rank, but neither CPU time nor a wait for a CPU fill it."""
        rank = """
            (SELECT rank, forward, usual, duration * busy AS cpu, duration * delayed AS waiting
             FROM (SELECT rank, avg(forward_ns) AS forward, median(forward_ns) AS usual,
                          avg(duration_ns) AS duration
                   FROM {0}steps GROUP BY rank)
             JOIN (SELECT rank, avg(cpu_ns) * interval AS busy, avg(run_delay_ns) * interval
                   AS delayed FROM {0}processes,
                   (SELECT (count(DISTINCT time_ns) - 1.0) / (max(time_ns) - min(time_ns))
                    AS interval FROM {0}processes WHERE role = 'rank')
                   WHERE role = 'rank' GROUP BY rank, interval) USING (rank))
        """
        return (
            f"""
            SELECT coalesce((
                SELECT bool_or(now.forward > 1.12 * was.forward AND now.cpu < 1.2 * was.cpu
                    AND now.forward > 1.25 * now.usual AND now.usual < 1.15 * was.usual
                    AND now.waiting - was.waiting < 0.3 * (now.forward - was.forward))
                FROM {rank.format("")} AS now JOIN {rank.format("reference.")} AS was USING (rank)
            ), false)
            AND coalesce((SELECT max(cgroup_throttled_ns) FROM host), 0) = 0
            """,
            "a few forward passes of a rank take much longer than the others, yet it neither"
            " computes more nor waits for a CPU, and no quota holds it back",
        )
