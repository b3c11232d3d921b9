"""A CPU quota that is spent before its period ends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others, rank_or_job
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

THROTTLED = """(SELECT max(held) FROM (SELECT sum(cgroup_throttled_ns) * 1.0
                                               / (max(time_ns) - min(time_ns)) AS held
                                        FROM {}host GROUP BY host))"""

if TYPE_CHECKING:
    from injectors.sim.job import Job


class CgroupCpuThrottle(Fault):
    """Move one rank, or the whole job, into a control group with a CPU quota.

    Mechanism: the kernel counts over periods of 100 ms; once the group has used
    `cores` x 100 ms of CPU time, all its threads wait for the next period.
    Source: vllm issue 9113, a pod at its limit of four cores.
    """

    cause: ClassVar[str] = "cgroup_cpu_throttle"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    needs: ClassVar[tuple[str, ...]] = ("cpu_quota",)
    cores: PositiveFloat
    rank: NonNegativeInt | None = None

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Set the quota."""
        return run.quota(self.rank, self.cores)

    def locus(self, topology: Topology) -> Locus:
        """The rank that the quota holds back, or the whole job."""
        return rank_or_job(topology, self.rank)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one that is held back."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Give the ranks a quota."""
        ranks = range(job.places.ranks) if self.rank is None else [self.rank]
        job.host.quota_q16.update(dict.fromkeys(ranks, round(self.cores * ONE)))

    def witness(self) -> tuple[str, str]:
        """The kernel says that it held the job back, and did not in the reference."""
        now, then = THROTTLED.format(""), THROTTLED.format("reference.")
        return (
            f"SELECT {now} > 0.01 AND {now} > 3 * coalesce({then}, 0)",
            "a CPU quota held the job's processes back for over 1 % of the time",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same; a job that is never held back needs no comparison."""
        return (f"SELECT {THROTTLED.format('')} > 0.01", self.witness()[1])
