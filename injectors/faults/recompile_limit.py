"""Compiled functions that the compiler has given up."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class RecompileLimit(Fault):
    """Start the job with a limit of graphs below the number of shapes that it meets.

    Mechanism: `torch._dynamo.config.recompile_limit`; shapes beyond it run op by op for good,
    after one warning. The fewer shapes were compiled, the larger the share of slow steps.
    Source: TensorRT-LLM#6142; PyTorch documentation of the recompile limit (8 by default).
    """

    cause: ClassVar[str] = "recompile_limit_eager_fallback"
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    needs: ClassVar[tuple[str, ...]] = ("compiler",)
    graphs: PositiveInt = 1

    def settings(self) -> dict[str, Any]:
        """The limit holds from the start."""
        return {"recompile_limit": self.graphs}

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether several shapes are compiled by inductor: else eager steps are as fast."""
        job = scenario.build_workload()
        compiled = (
            getattr(job, "compiled", False) or getattr(job, "compile_blocks", "no") == "inductor"
        )
        return super().recorded_fits(scenario) and compiled and len(getattr(job, "lengths", ())) > 1

    def misfit(self, scenario: Scenario) -> str | None:
        """Fewer shapes than graphs never reach the limit."""
        lengths = len(getattr(scenario.build_workload(), "lengths", ()))
        if lengths > self.graphs:
            return None
        return f"graphs must be below the {lengths} lengths of sequences, got {self.graphs}"

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The model must be compiled."""
        compiled = scenario.build_workload().model_dump().get("compiled")
        return None if compiled else "needs a compiled model"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing more: the job was started so."""
        return nullcontext()

    def perturb(self, job: Job) -> None:
        """Leave layers beyond the limit to the eager path, where nothing fuses what they do."""
        job.framework.compiled_share_q16 = self.graphs * ONE // (self.graphs + 3)
        job.framework.plain = True

    def witness(self) -> tuple[str, str]:
        """The runtime names functions left to the eager path, and more operators run."""
        return (
            """
            SELECT (SELECT count(*) FROM runtime WHERE event = 'recompile_limit')
                   > (SELECT count(*) FROM reference.runtime WHERE event = 'recompile_limit')
               AND (SELECT count(*) FROM trace_events WHERE category IN ('cpu_op', 'kernel'))
                   > 1.1 * (SELECT count(*) FROM reference.trace_events
                            WHERE category IN ('cpu_op', 'kernel'))
            """,
            "compiled functions were left to the eager path, and their operators run one by one",
        )
