"""Gradient buckets that are too small."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveFloat

from injectors.faults.base import Fault, Run
from injectors.sim.names import GRADIENT_BUCKETS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class UndersizedBuckets(Fault):
    """Start the job with small gradient buckets.

    Mechanism: DDP closes a bucket when it holds `bucket_mb` MiB, so the same gradients leave in
    more all-reduces, each with its fixed cost; a parameter is never split.
    Source: Li et al. (VLDB 2020), PyTorch Distributed, gradient bucketing.
    """

    cause: ClassVar[str] = "undersized_buckets"
    simulated: ClassVar[tuple[str, ...] | None] = GRADIENT_BUCKETS
    backward_alone: ClassVar[bool] = True
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    least_ranks: ClassVar[int] = 2
    bucket_mb: PositiveFloat

    def settings(self) -> dict[str, Any]:
        """Buckets are laid out when the job starts."""
        return {"bucket_mb": self.bucket_mb}

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing more: the job was started with them."""
        return nullcontext()

    def perturb(self, job: Job) -> None:
        """Close buckets early."""
        job.framework.bucket_bytes = max(1, round(self.bucket_mb * 2**20))

    def witness(self) -> tuple[str, str]:
        """The same bytes leave in more and smaller calls."""
        return (
            """
            WITH now AS (SELECT count(*) * 1.0 / (SELECT count(*) FROM steps) AS calls,
                                sum(bytes) * 1.0 / (SELECT count(*) FROM steps) AS bytes,
                                sum(bytes * bytes * 1.0) / sum(bytes) AS size
                         FROM collectives WHERE op = 'all_reduce'),
                 then_ AS (SELECT count(*) * 1.0 / (SELECT count(*) FROM reference.steps) AS calls,
                                  sum(bytes) * 1.0 / (SELECT count(*) FROM reference.steps)
                                  AS bytes,
                                  sum(bytes * bytes * 1.0) / sum(bytes) AS size
                           FROM reference.collectives WHERE op = 'all_reduce')
            SELECT now.calls > 1.5 * then_.calls AND now.size < 0.7 * then_.size
               AND now.bytes BETWEEN 0.95 * then_.bytes AND 1.05 * then_.bytes
            FROM now, then_
            """,
            "a step reduces the same bytes in more and smaller calls than in the reference",
        )
