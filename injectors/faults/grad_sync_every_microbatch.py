"""Gradient accumulation that averages gradients too often."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class GradSyncEveryMicrobatch(Fault):
    """Average gradients over the ranks in every micro-batch instead of the last alone.

    Mechanism: the accumulating loop leaves DDP's `no_sync` out, so its reducer sends all
    buckets again; `every` is how many micro-batches pass between two averages.
    Source: accelerate issue 1153, cosmos-framework issue 161.
    """

    cause: ClassVar[str] = "grad_sync_every_microbatch"
    simulated: ClassVar[tuple[str, ...] | None] = ("ddp_transformer",)
    backward_alone: ClassVar[bool] = True
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    least_ranks: ClassVar[int] = 2
    every: PositiveInt = 1

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Only accumulated gradients can be averaged too often."""
        return (
            super().recorded_fits(scenario)
            and getattr(scenario.build_workload(), "micro_batches", 1) > 1
        )

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The same of simulated jobs."""
        accumulates = scenario.build_workload().model_dump().get("accumulation", 1)
        return None if accumulates > 1 else f"needs accumulation above 1, got {accumulates}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let further micro-batches average."""
        return run.knobs.turned(sync_every=float(self.every))

    def perturb(self, job: Job) -> None:
        """Average in every micro-batch."""
        job.framework.sync_every_microbatch = True

    def witness(self) -> tuple[str, str]:
        """Calls and bytes multiply alike, for the same tokens in the same element type."""
        return (
            """
            WITH now AS (SELECT count(*) AS calls, sum(bytes) AS bytes, max(dtype) AS dtype,
                                (SELECT sum(tokens) FROM steps) AS tokens
                         FROM collectives WHERE op = 'all_reduce'),
                 then_ AS (SELECT count(*) AS calls, sum(bytes) AS bytes, max(dtype) AS dtype,
                                  (SELECT sum(tokens) FROM reference.steps) AS tokens
                           FROM reference.collectives WHERE op = 'all_reduce')
            SELECT now.bytes > 1.4 * then_.bytes * now.tokens / then_.tokens
               AND now.calls > 1.4 * then_.calls * now.tokens / then_.tokens
               AND now.bytes / now.calls BETWEEN 0.8 * then_.bytes / then_.calls
                                             AND 1.25 * then_.bytes / then_.calls
               AND now.dtype = then_.dtype
            FROM now, then_
            """,
            "gradients of the same size are reduced several times as often for the same tokens",
        )
