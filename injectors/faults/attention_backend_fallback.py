"""Attention step by step instead of fused."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class AttentionBackendFallback(Fault):
    """Send the attention of some layers down its mathematical path.

    Mechanism: the first `layers` layers may not use the flash kernel, so scores and weights
    of all positions are written out; the job must use the library's attention.
    Source: transformers issue 30461.
    """

    cause: ClassVar[str] = "attention_backend_fallback"
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    layers: PositiveInt

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Only the library's attention has a fused kernel to leave."""
        return (
            super().recorded_fits(scenario)
            and getattr(scenario.build_workload(), "attention", "") == "sdpa"
        )

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Take the first `layers` layers off the flash kernel."""
        return run.knobs.turned(math_layers=float(self.layers))

    def perturb(self, job: Job) -> None:
        """Write scores and weights out in these layers."""
        job.framework.math_layers = self.layers

    def witness(self) -> tuple[str, str]:
        """Calls of the fused kernel give way to calls of the mathematical path."""
        return (
            """
            WITH now AS (SELECT count(*) FILTER (name LIKE '%dot_product%attention_math%') AS math,
                                count(*) FILTER (name LIKE '%dot_product_flash%') AS fused
                         FROM trace_events),
                 then_ AS (SELECT count(*) FILTER (name LIKE '%dot_product%attention_math%')
                                  AS math,
                                  count(*) FILTER (name LIKE '%dot_product_flash%') AS fused
                           FROM reference.trace_events)
            SELECT now.math > then_.math AND now.fused < then_.fused FROM now, then_
            """,
            "the mathematical path of attention was dispatched where the reference used the flash"
            " kernel",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The mathematical path of attention runs at all."""
        return (
            """
            SELECT count(*) > 0 FROM trace_events
            WHERE name LIKE '%dot_product%attention_math%'
            """,
            "attention is computed on its mathematical path",
        )
