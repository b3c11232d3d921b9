"""Answers that cost the engine more host time than the model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.faults.structured_output_cpu_bound import STEPS
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class EngineCpuBound(Fault):
    """Let every answer tell the likeliest tokens, which the engine's own loop puts into words.

    Mechanism: per sequence and step, each candidate is detokenised in its context and written
    as JSON by the process that also schedules, so the model waits.
    Source: gLLM issue 148, vLLM issue 14538: host work between batches.
    """

    cause: ClassVar[str] = "engine_cpu_bound"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    logprobs: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Tell `logprobs` candidates with each token."""
        return run.knobs.turned(logprobs=float(self.logprobs))

    def perturb(self, job: Job) -> None:
        """Spend host time on every candidate of every running request."""
        job.serving.per_request_ns += self.logprobs * 10_000

    def witness(self) -> tuple[str, str]:
        """Host time of a step rose, whatever the kind of requests in it.

        Its share of the step must have risen too: a slower machine raises both.
        """
        return (
            f"""
            WITH now AS (SELECT median(scheduler_ns) AS host, median(duration_ns) AS whole
                         FROM engine),
                 then_ AS (SELECT median(scheduler_ns) AS host, median(duration_ns) AS whole
                           FROM reference.engine),
                 kinds AS (SELECT regr_slope(host, constrained) AS each_ns, avg(host) AS host
                           FROM ({STEPS.format(schema="")}))
            SELECT (SELECT now.host > 1.4 * then_.host
                       AND now.host > then_.host + 0.04 * then_.whole
                       AND now.host / now.whole > 1.4 * then_.host / then_.whole FROM now, then_)
               AND (SELECT coalesce(each_ns < 0.15 * host, true) FROM kinds)
            """,
            "the engine's host time in a step rose, and more than the step did, as much in steps"
            " without constrained requests",
        )

    def simulated_witness(self) -> tuple[str, str]:
        """As the other, where many constrained requests run together and each adds little."""
        sql, says = self.witness()
        return (
            f"""
            {sql}
               AND (SELECT coalesce(regr_slope(host, constrained) * avg(constrained)
                                    <= 0.25 * avg(host), true)
                    FROM ({STEPS.format(schema="")}))
            """,
            says,
        )
