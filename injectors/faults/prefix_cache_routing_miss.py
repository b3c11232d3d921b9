"""Routing that scatters shared prefixes over engines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

# How much of a tenant's requests the engine gets that serves most of them, mean over tenants.
TOGETHER = """
    SELECT avg(most) FROM (
        SELECT max(requests) * 1.0 / sum(requests) AS most FROM (
            SELECT tenant, engine, count(*) AS requests FROM {schema}requests
            WHERE tenant IS NOT NULL GROUP BY tenant, engine)
        GROUP BY tenant)
"""


class PrefixCacheRoutingMiss(Fault):
    """Route a share of the requests by load alone instead of to the engine of their tenant.

    Mechanism: every engine then has to hold the prefixes of all tenants, and what it cannot
    hold is computed again. Needs at least two engines.
    Source: dynamo issue 659; sglang pull request 2114.
    """

    cause: ClassVar[str] = "prefix_cache_routing_miss"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    def misfit(self, scenario: Scenario) -> str | None:
        """One engine has all prefixes anyway."""
        engines = scenario.parameters.get("engines", 1)
        return None if engines > 1 else f"engines must be at least 2, got {engines}"

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The same of the engines that compute prompts; of two pools those are half of them."""
        workload = scenario.build_workload()
        engines = getattr(workload, "engines", 1)
        if getattr(workload, "disaggregated", False):
            engines //= 2
        must = "engines that compute prompts must be at least 2"
        return None if engines > 1 else f"{must}, got {engines}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Keep the other requests with their engines."""
        return run.knobs.turned(sticky_requests=1.0 - self.share)

    def perturb(self, job: Job) -> None:
        """Route the share by load."""
        job.serving.scattered_q16 = round(self.share * ONE)

    def witness(self) -> tuple[str, str]:
        """Tenants left their engine, and fewer prompt tokens are found in the caches."""
        return (
            f"""
            WITH now AS (SELECT sum(prefix_cache_hits) * 1.0 / sum(prefix_cache_queries) AS rate
                         FROM engine),
                 then_ AS (SELECT sum(prefix_cache_hits) * 1.0 / sum(prefix_cache_queries) AS rate
                           FROM reference.engine)
            SELECT (SELECT now.rate < 0.9 * then_.rate FROM now, then_)
               AND ({TOGETHER.format(schema="")})
                   < ({TOGETHER.format(schema="reference.")}) - 0.1
            """,
            "requests of one tenant go to several engines, which find a smaller part of their"
            " prompts in their caches than in the reference",
        )

    def simulated_witness(self) -> tuple[str, str]:
        """As the other; and what is not found is computed once, not in every step."""
        sql, says = self.witness()
        return (
            f"""
            {sql}
               AND (SELECT sum(prefill_tokens) FROM engine)
                   <= 1.2 * (SELECT sum(prompt_tokens - cached_tokens) FROM requests)
            """,
            f"{says}; engines compute no more than what they did not find",
        )
