"""A heap of cyclic garbage on one rank."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others, rank_or_job
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class PythonGcPause(Fault):
    """Let one rank's loop keep records that only the cyclic collector can free.

    Mechanism: records of the last four micro-batches refer to each other and live long
    enough to reach the oldest generation, so Python's automatic collector walks the whole heap
    every few steps; `records_per_micro_batch` sets how often.
    Source: ByteDance (OSDI 2025), planned garbage collection; torchtitan pull request 148.
    """

    cause: ClassVar[str] = "python_gc_pause"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    records_per_micro_batch: PositiveInt
    rank: NonNegativeInt = 0

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the rank keep records."""
        return run.knobs.turned(
            history_records=float(self.records_per_micro_batch), history_rank=float(self.rank)
        )

    def locus(self, topology: Topology) -> Locus:
        """The rank whose collector runs."""
        return rank_or_job(topology, self.rank)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks wait for it."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Let full collections of the rank walk its records."""
        job.host.gc_every = 4
        job.host.gc_ns = self.records_per_micro_batch * 1_000
        job.host.gc_ranks = (self.rank,)

    def witness(self) -> tuple[str, str]:
        """Full collections recur and take a share of the steps that they did not take before."""
        return (
            """
            WITH now AS (SELECT max(spent) AS spent, max(full_) AS full_ FROM (
                             SELECT sum(duration_ns) AS spent,
                                    count(*) FILTER (value = 2) AS full_
                             FROM runtime WHERE event = 'gc' GROUP BY rank)),
                 then_ AS (SELECT coalesce(max(spent), 0) AS spent, coalesce(max(full_), 0) AS full_
                           FROM (SELECT sum(duration_ns) AS spent,
                                        count(*) FILTER (value = 2) AS full_
                                 FROM reference.runtime WHERE event = 'gc' GROUP BY rank))
            SELECT now.spent > 3 * then_.spent AND now.full_ >= 3 AND now.full_ > 2 * then_.full_
               AND now.spent > 0.03 * (SELECT sum(duration_ns) FROM steps WHERE rank = 0)
            FROM now, then_
            """,
            "full garbage collections of one rank recur and fill more than 3 % of the time, three"
            " times as much as in the reference",
        )

    def audit_witness(self) -> tuple[str, str]:
        """Full collections recur and take a share of the steps."""
        return (
            """
            SELECT (SELECT max(spent) FROM (SELECT sum(duration_ns) AS spent FROM runtime
                                            WHERE event = 'gc' GROUP BY rank
                                            HAVING count(*) FILTER (value = 2) >= 3))
                   > 0.03 * (SELECT sum(duration_ns) FROM steps WHERE rank = 0)
            """,
            "full garbage collections of one rank recur and fill more than 3 % of the time",
        )
