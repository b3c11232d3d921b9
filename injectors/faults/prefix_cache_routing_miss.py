"""Routing that scatters shared prefixes over engines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run


class PrefixCacheRoutingMiss(Fault):
    """Route a share of the requests by load alone instead of to the engine of their tenant.

    Mechanism: every engine then has to hold the prefixes of all tenants, and what it cannot
    hold is computed again. Needs at least two engines.
    Source: dynamo issue 659; sglang pull request 2114.
    """

    cause: ClassVar[str] = "prefix_cache_routing_miss"
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Keep the other requests with their engines."""
        return run.knobs.turned(sticky_requests=1.0 - self.share)

    def witness(self) -> tuple[str, str]:
        """Fewer prompt tokens are found in the engines' caches, at equal prompts."""
        return (
            """
            WITH now AS (SELECT sum(prefix_cache_hits) * 1.0 / sum(prefix_cache_queries) AS rate,
                                count(DISTINCT engine) AS engines,
                                sum(num_preemptions) * 1.0 / sum(decode_tokens) AS evicted
                         FROM engine),
                 then_ AS (SELECT sum(prefix_cache_hits) * 1.0 / sum(prefix_cache_queries) AS rate
                           FROM reference.engine)
            SELECT (SELECT now.engines > 1 AND now.rate < 0.85 * then_.rate
                       AND now.evicted < 0.001 FROM now, then_)
               AND (SELECT avg(prompt_tokens) FROM requests)
                   BETWEEN 0.8 * (SELECT avg(prompt_tokens) FROM reference.requests)
                       AND 1.25 * (SELECT avg(prompt_tokens) FROM reference.requests)
            """,
            "of prompts as long as before, several engines find a smaller part in their caches",
        )
