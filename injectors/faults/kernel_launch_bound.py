"""Batches in pieces too small to be worth an operator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class KernelLaunchBound(Fault):
    """Work through each micro-batch in `pieces` parts, one after the other.

    Mechanism: the same operators run `pieces` times on as much smaller inputs, so the fixed
    cost of issuing them outgrows the work; the loss is that of the whole batch.
    Source: Microsoft study (ICSE 2024), improper batch size.
    """

    cause: ClassVar[str] = "kernel_launch_bound"
    simulated: ClassVar[tuple[str, ...] | None] = (
        "ddp_transformer",
        "fsdp_transformer",
        "tensor_parallel_transformer",
        "moe_transformer",
        "vision",
        "recommender",
        "diffusion",
    )
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    pieces: int = Field(ge=2)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """A batch can be cut into no more than its samples."""
        samples = scenario.build_workload().model_dump().get("micro_batch", 1)
        return None if self.pieces <= samples else f"pieces must be at most {samples}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Cut the batches up."""
        return run.knobs.turned(pieces=float(self.pieces))

    def perturb(self, job: Job) -> None:
        """Cut the micro-batches."""
        job.framework.micro_batch_split = self.pieces

    def witness(self) -> tuple[str, str]:
        """The same tokens take more calls of the linear layers."""
        return (
            """
            SELECT (SELECT count(*) FROM trace_events WHERE name = 'aten::addmm')
                   > 1.5 * (SELECT count(*) FROM reference.trace_events WHERE name = 'aten::addmm')
               AND (SELECT sum(backward_ns) > 0 FROM steps)
               AND (SELECT avg(tokens) FROM steps)
                   BETWEEN 0.95 * (SELECT avg(tokens) FROM reference.steps)
                       AND 1.05 * (SELECT avg(tokens) FROM reference.steps)
            """,
            "as many tokens pass through far more calls of the same linear layers",
        )
