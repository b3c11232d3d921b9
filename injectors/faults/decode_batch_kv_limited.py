"""A pool of keys and values that admits only a few requests at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class DecodeBatchKvLimited(Fault):
    """Take blocks out of the pool while admission books the blocks of whole answers.

    Mechanism: nothing is ever evicted, but few requests find room, so few decode together.
    Source: sglang issue 6341; the policy is TensorRT-LLM's GUARANTEED_NO_EVICT.
    """

    cause: ClassVar[str] = "decode_batch_kv_limited"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    kv_blocks: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Leave `kv_blocks` blocks an engine, or what the longest request needs."""
        return run.knobs.turned(kv_blocks=float(self.kv_blocks), reserve_answers=1.0)

    def perturb(self, job: Job) -> None:
        """Take blocks away and book whole answers."""
        job.serving.kv_blocks = self.kv_blocks
        job.serving.reserve_answers = True

    def witness(self) -> tuple[str, str]:
        """Few requests run and more wait at a pool that is nearly full, without eviction."""
        return (
            """
            SELECT (SELECT avg(kv_cache_usage) > 0.7 AND avg(num_requests_waiting) > 1
                       AND sum(num_preemptions) <= 0.001 * sum(decode_tokens) FROM engine)
               AND (SELECT avg(num_requests_running) FROM engine)
                   < 0.85 * (SELECT avg(num_requests_running) FROM reference.engine)
               AND (SELECT avg(kv_cache_usage) FROM engine)
                   > 1.2 * (SELECT avg(kv_cache_usage) FROM reference.engine)
            """,
            "fewer requests run than in the reference while others wait, the pool is nearly full,"
            " and none is evicted",
        )

    def simulated_witness(self) -> tuple[str, str]:
        """As the other, by requests: answers are longer than those of recorded jobs."""
        sql, says = self.witness()
        return (
            f"""
            {sql}
               AND (SELECT sum(num_preemptions) FROM engine)
                   <= 0.03 * (SELECT count(*) FROM requests)
            """,
            says,
        )
