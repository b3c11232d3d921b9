"""The same mathematics as many small kernels."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

# Inductor's on CPUs, this project's own in Triton on CUDA.
FUSED = "cpp_fused|^(layer_norm|gelu|softmax)_(forward|backward)$"


class UnfusedKernels(Fault):
    """Run the elementwise chains of some layers op by op instead of fused.

    Mechanism: layer norm, GELU and softmax leave the compiled (CUDA: Triton) kernel for a
    chain of small ones with equal results.
    Source: operator fusion in PyTorch 2 (ASPLOS 2024).
    """

    cause: ClassVar[str] = "unfused_kernels"
    simulated: ClassVar[tuple[str, ...] | None] = (*TRANSFORMERS, "vision", "diffusion")
    needs: ClassVar[tuple[str, ...]] = ("compiler",)
    layers: PositiveInt

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Only compiled kernels can be taken apart."""
        return super().recorded_fits(scenario) and bool(
            getattr(scenario.build_workload(), "compiled", 0)
        )

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Take the first `layers` layers out of the fused path."""
        return run.knobs.turned(eager_layers=float(self.layers))

    def perturb(self, job: Job) -> None:
        """Run chains of these layers op by op."""
        job.framework.unfused_layers = self.layers

    def witness(self) -> tuple[str, str]:
        """A step runs many more operators than in the reference."""
        return (
            f"""
            SELECT (SELECT count(*) FROM trace_events WHERE category IN ('cpu_op', 'kernel'))
                   > 1.15 * (SELECT count(*) FROM reference.trace_events
                             WHERE category IN ('cpu_op', 'kernel'))
               AND (SELECT count(*) FROM trace_events WHERE regexp_matches(name, '{FUSED}'))
                   < 0.8 * (SELECT count(*) FROM reference.trace_events
                            WHERE regexp_matches(name, '{FUSED}'))
               AND NOT EXISTS (SELECT 1 FROM runtime WHERE event = 'recompile_limit')
            """,
            "as many profiled steps run over 15 % more operators than the reference, and fewer of"
            " them fused",
        )
