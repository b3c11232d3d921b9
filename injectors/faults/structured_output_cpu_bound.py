"""Grammar masks that are computed anew for every token."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

# Median host time of full engine steps (decoding seats taken as usual), by the number of
# constrained requests in them. Medians: a step that another process interrupted is no sign.
STEPS = """
    SELECT constrained, median(host) AS host, median(whole) AS whole FROM (
        SELECT any_value(e.scheduler_ns) AS host, any_value(e.duration_ns) AS whole,
               count(r.request) AS constrained
        FROM {schema}engine e LEFT JOIN {schema}requests r
          ON r.engine = e.engine AND r.request_class = 'json'
         AND r.scheduled_ns <= e.start_ns + e.scheduler_ns
         AND coalesce(r.finished_ns > e.start_ns, true)
        WHERE e.num_requests_running
              >= (SELECT median(num_requests_running) FROM {schema}engine)
        GROUP BY e.engine, e.step)
    GROUP BY constrained HAVING count(*) >= 8
"""

if TYPE_CHECKING:
    from injectors.sim.job import Job


class StructuredOutputCpuBound(Fault):
    """Leave the grammars of a share of the constrained requests without an index of masks.

    Mechanism: which tokens may follow is found by reading every token of the vocabulary through
    the automaton of the grammar, for each request and step, before the model runs.
    Source: Willard and Louf (2023), why an index is needed; vLLM issues 10081 and 12122.
    """

    cause: ClassVar[str] = "structured_output_cpu_bound"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Index the grammars of the other constrained requests only."""
        return run.knobs.turned(indexed_requests=1.0 - self.share)

    def perturb(self, job: Job) -> None:
        """Search the vocabulary for the share of constrained requests."""
        job.serving.unindexed_q16 = round(self.share * ONE)

    def witness(self) -> tuple[str, str]:
        """Each constrained request in a step adds host time, far more than in the reference."""
        return (
            f"""
            WITH now AS (SELECT regr_slope(host, constrained) AS each_ns, avg(host) AS host
                         FROM ({STEPS.format(schema="")})),
                 then_ AS (SELECT regr_slope(host, constrained) AS each_ns, avg(whole) AS whole
                           FROM ({STEPS.format(schema="reference.")}))
            SELECT now.each_ns > 0.15 * now.host
               AND now.each_ns > then_.each_ns + 0.03 * then_.whole FROM now, then_
            """,
            "host time of a step grows with each constrained request in it, far more than in the"
            " reference",
        )

    def simulated_witness(self) -> tuple[str, str]:
        """As the other, where so many run together that each request is a small part of a step."""
        return (
            f"""
            WITH now AS (SELECT regr_slope(host, constrained) AS each_ns, avg(host) AS host,
                                avg(constrained) AS requests
                         FROM ({STEPS.format(schema="")})),
                 then_ AS (SELECT regr_slope(host, constrained) AS each_ns
                           FROM ({STEPS.format(schema="reference.")}))
            SELECT now.each_ns * now.requests > 0.25 * now.host
               AND now.each_ns > 3 * greatest(then_.each_ns, 0) + 100000 FROM now, then_
            """,
            "constrained requests make up much of the host time of a step, each of them far more"
            " than in the reference",
        )
