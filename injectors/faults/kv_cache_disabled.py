"""Generation without a memory of keys and values."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class KvCacheDisabled(Fault):
    """Let a share of the requests compute all their tokens again for every new one.

    Mechanism: their keys and values are not kept from one step to the next.
    Source: use_cache=False in Hugging Face transformers; own measurements.
    """

    cause: ClassVar[str] = "kv_cache_disabled"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Keep keys and values for the other requests only."""
        return run.knobs.turned(cached_requests=1.0 - self.share)

    def perturb(self, job: Job) -> None:
        """Keep no keys and values for the share."""
        job.serving.uncached_q16 = round(self.share * ONE)

    def witness(self) -> tuple[str, str]:
        """More tokens are computed than prompts had, though nothing was evicted."""
        return (
            """
            WITH now AS (SELECT sum(prefill_tokens) * 1.0 / sum(decode_tokens) AS prefill
                         FROM engine),
                 then_ AS (SELECT sum(prefill_tokens) * 1.0 / sum(decode_tokens) AS prefill
                           FROM reference.engine)
            SELECT (SELECT now.prefill > 1.2 * then_.prefill FROM now, then_)
               AND (SELECT sum(prefill_tokens) FROM engine)
                   > 1.2 * (SELECT sum(prompt_tokens - cached_tokens) FROM requests)
               AND (SELECT sum(num_preemptions) <= 0.001 * sum(decode_tokens) FROM engine)
            """,
            "engines compute many more tokens than the prompts have, and nothing was evicted",
        )
