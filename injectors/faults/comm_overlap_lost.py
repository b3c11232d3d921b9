"""Gradient buckets that are waited for one by one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import GRADIENT_BUCKETS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class CommOverlapLost(Fault):
    """Wait for gradient buckets as soon as they are sent, so backward stands still meanwhile.

    Mechanism: the communication hook waits for the all-reduce that it started; `buckets` is
    for how many of a step's buckets, from the first.
    Source: fairscale issue 897, verl-omni issue 421.
    """

    cause: ClassVar[str] = "comm_overlap_lost"
    simulated: ClassVar[tuple[str, ...] | None] = GRADIENT_BUCKETS
    backward_alone: ClassVar[bool] = True
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    least_ranks: ClassVar[int] = 2
    buckets: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the hook wait."""
        return run.knobs.turned(waited_buckets=float(self.buckets))

    def perturb(self, job: Job) -> None:
        """Wait for each bucket as soon as it is sent."""
        job.framework.overlap = False

    def witness(self) -> tuple[str, str]:
        """Buckets no longer queue behind each other, and none takes longer than before."""
        return (
            """
            WITH now AS (SELECT avg((created_ns < before)::INT) AS queued, avg(length) AS length
                         FROM (SELECT created_ns, completed_ns - created_ns AS length,
                                      lag(completed_ns) OVER (PARTITION BY rank ORDER BY seq)
                                      AS before
                               FROM collectives WHERE op = 'all_reduce')),
                 then_ AS (SELECT avg((created_ns < before)::INT) AS queued, avg(length) AS length
                           FROM (SELECT created_ns, completed_ns - created_ns AS length,
                                        lag(completed_ns) OVER (PARTITION BY rank ORDER BY seq)
                                        AS before
                                 FROM reference.collectives WHERE op = 'all_reduce'))
            SELECT then_.queued > 0.1 AND now.queued < 0.6 * then_.queued
               AND now.length < 1.1 * then_.length
            FROM now, then_
            """,
            "a bucket is sent only after the one before it is done, and each is as fast as before",
        )
