"""A pipeline stage with more layers than the others."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.workloads.pipeline import PipelineTransformer
from injectors.workloads.pipeline import Pipeline, split

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class PpStageImbalance(Fault):
    """Start the job with an uneven split: the last stage has `layers` more than planned.

    Mechanism: the last stage computes longer for each micro-batch, and all others wait.
    Source: ByteDance (OSDI 2025), what-if analysis: stage partitioning imbalance.
    """

    cause: ClassVar[str] = "pp_stage_imbalance"
    simulated: ClassVar[tuple[str, ...] | None] = ("pipeline_transformer",)
    workloads: ClassVar[tuple[str, ...]] = ("pipeline",)
    least_ranks: ClassVar[int] = 2
    layers: PositiveInt

    def misfit(self, scenario: Scenario) -> str | None:
        """Every stage must keep a layer."""
        workload = scenario.build_workload()
        assert isinstance(workload, Pipeline)
        try:
            split(workload.layers, scenario.ranks, self.layers)
        except ValueError as error:
            return str(error)
        return None

    def settings(self) -> dict[str, Any]:
        """The split is fixed when the job starts."""
        return {"layers_moved": self.layers}

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing: the job was started that way."""
        return nullcontext()

    def locus(self, topology: Topology) -> Locus:
        """The last stage."""
        return Locus(scope="stage", stages=(_last(topology),))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All ranks of the other stages."""
        last = _last(topology)
        return tuple(place.rank for place in topology.ranks if place.stage != last)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The same of a simulated pipeline."""
        workload = scenario.build_workload()
        assert isinstance(workload, PipelineTransformer)
        try:
            workload.split(scenario.places.pipeline, self.layers)
        except ValueError as error:
            return str(error)
        return None

    def perturb(self, job: Job) -> None:
        """Give the last stage more layers."""
        job.framework.last_stage_layers_q16 = self.layers * ONE

    def witness(self) -> tuple[str, str]:
        """One rank runs more operators than before, and computes longer than before and others."""
        return (
            """
            WITH now AS (SELECT rank, avg(forward_ns + backward_ns) AS busy
                         FROM steps GROUP BY rank),
                 then_ AS (SELECT rank, avg(forward_ns + backward_ns) AS busy
                           FROM reference.steps GROUP BY rank),
                 ops AS (SELECT rank, count(*) AS n FROM trace_events
                         WHERE category IN ('cpu_op', 'kernel') GROUP BY rank),
                 ops_then AS (SELECT rank, count(*) AS n FROM reference.trace_events
                              WHERE category IN ('cpu_op', 'kernel') GROUP BY rank)
            SELECT max(ops.n > 1.05 * ops_then.n
                       AND now.busy / (SELECT avg(busy) FROM now)
                           > 1.08 * then_.busy / (SELECT avg(busy) FROM then_))
               AND min(ops.n * 1.0 / ops_then.n) < 1
            FROM now JOIN then_ USING (rank) JOIN ops USING (rank) JOIN ops_then USING (rank)
            """,
            "work moved: one rank runs more operators and computes longer than in the reference,"
            " another one runs fewer",
        )


def _last(topology: Topology) -> int:
    return max(place.stage or 0 for place in topology.ranks)
