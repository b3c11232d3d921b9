"""A compiled function that is compiled again and again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat, PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class RecompilationChurn(Fault):
    """Pass a Python number that changes every few steps into compiled blocks.

    Mechanism: torch.compile with `dynamic=False` specialises on the number, so its guard fails
    at each new value and the block is compiled once more. The computation stays the same.
    The cost is that of one compilation over `every` forward passes; a simulated one takes
    `compile_s`.
    Source: jax#1038 (a changing static argument); PyTorch documentation of recompilation.
    """

    cause: ClassVar[str] = "recompilation_churn"
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    every: PositiveInt
    compile_s: PositiveFloat = 0.6

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether blocks are compiled, else nothing compiles again."""
        backend = getattr(scenario.build_workload(), "compile_blocks", "no")
        return super().recorded_fits(scenario) and backend != "no"

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The model must be compiled."""
        compiled = scenario.build_workload().model_dump().get("compiled")
        return None if compiled else "needs a compiled model"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the number change every `every` forward passes."""
        return run.knobs.turned(stage_steps=float(self.every))

    def perturb(self, job: Job) -> None:
        """Compile again every so many steps."""
        job.compiler.recompile_every = self.every
        job.compiler.recompile_ns = round(self.compile_s * 10**9)

    def witness(self) -> tuple[str, str]:
        """Compilations go on after the first steps, each because a guard failed."""
        return (
            """
            WITH span AS (SELECT min(start_ns) AS begin,
                                 max(start_ns + duration_ns) - min(start_ns) AS whole FROM steps),
                 late AS (SELECT * FROM runtime, span WHERE event = 'recompile' AND detail <> ''
                          AND time_ns > begin + 0.1 * whole)
            SELECT (SELECT count(*) >= 2 AND sum(duration_ns) > 0.03 * max(whole) FROM late)
               AND (SELECT coalesce(sum(duration_ns), 0) FROM late)
                   > 3 * (SELECT coalesce(sum(duration_ns), 0) FROM reference.runtime
                          WHERE event = 'recompile' AND detail <> '')
            """,
            "guards of compiled code fail all along the run, and compiling takes its time",
        )
