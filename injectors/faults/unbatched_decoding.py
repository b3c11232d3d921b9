"""Requests that are served one after the other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class UnbatchedDecoding(Fault):
    """Let an engine run only one request, or very few, at a time.

    Mechanism: max_num_seqs is far below what the queue offers, so weights are read and ops
    launched for a few tokens instead of many.
    Source: Orca (OSDI 2022), iteration-level batching; own measurements.
    """

    cause: ClassVar[str] = "unbatched_decoding"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    max_num_seqs: PositiveInt = 1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Leave `max_num_seqs` seats an engine."""
        return run.knobs.turned(max_num_seqs=float(self.max_num_seqs))

    def perturb(self, job: Job) -> None:
        """Run few requests at a time."""
        job.serving.max_running = self.max_num_seqs

    def witness(self) -> tuple[str, str]:
        """Few requests run and more wait while the pool has more room than before."""
        return (
            """
            WITH now AS (SELECT avg(num_requests_running) AS running, avg(kv_cache_usage) AS usage,
                                avg(num_requests_waiting) AS waiting,
                                sum(prefill_tokens) * 1.0 / sum(decode_tokens) AS prefill
                         FROM engine),
                 then_ AS (SELECT avg(num_requests_running) AS running,
                                  avg(kv_cache_usage) AS usage,
                                  sum(prefill_tokens) * 1.0 / sum(decode_tokens) AS prefill
                           FROM reference.engine)
            SELECT now.running < 0.7 * then_.running AND now.waiting > 1
               AND now.usage < then_.usage AND now.prefill < 1.2 * then_.prefill
            FROM now, then_
            """,
            "requests wait although the pool has more room than in the reference, where more run"
            " together",
        )
