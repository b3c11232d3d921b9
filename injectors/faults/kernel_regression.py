"""The same operators by slower kernels."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, model_validator

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING, TRAINING
from injectors.sim.releases import upgraded

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

# Families whose kernels matter in a simulated workload; others: large products and attention.
FAMILIES = {
    "vision": ("convolution", "norm"),
    "diffusion": ("gemm", "attention", "convolution", "norm"),
    "recommender": ("gemm", "embedding", "elementwise"),
}


class KernelRegression(Fault):
    """Let the job use other versions of its kernels, with the same operators and results.

    Mechanism: on CPUs oneDNN dispatches convolutions to kernels for an older instruction set
    (`instructions`, its variable ONEDNN_MAX_CPU_ISA), as after an upgrade that no longer knows
    the processor. On CUDA the first `layers` layers change: in the image classifier convolutions
    leave cuDNN for PyTorch's own algorithm; in a compiled language model the Triton kernels are
    laid out with small, uncoalesced tiles and one warp a row, which spills registers on long
    rows.
    Source: nccl#1997; oneDNN's documentation of its dispatcher control.
    """

    cause: ClassVar[str] = "kernel_regression"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    layers: NonNegativeInt = 0
    instructions: Literal["SSE41", "AVX", "AVX2"] | None = None
    family: Literal["gemm", "attention", "norm", "elementwise", "convolution", "embedding"] = "gemm"
    efficiency: float = Field(
        default=0.7, gt=0, le=1, description="speed left to the family (simulated)"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> KernelRegression:
        if (self.instructions is None) == (self.layers == 0):
            raise ValueError("must have either layers (on CUDA) or instructions (on CPUs)")
        return self

    def settings(self) -> dict[str, Any]:
        """A library's dispatch is settled at its first call."""
        if self.instructions is None:
            return {}
        return {"environment": {"ONEDNN_MAX_CPU_ISA": self.instructions}}

    def misfit(self, scenario: Scenario) -> str | None:
        """Only convolutions are oneDNN's."""
        if self.instructions is None or scenario.workload == "image_classifier":
            return None
        return "instructions act on convolutions, which a language model does not have"

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether the job has kernels of two versions: a language model when compiled."""
        has = scenario.workload == "image_classifier" or bool(
            getattr(scenario.build_workload(), "compiled", False)
        )
        return super().recorded_fits(scenario) and has

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The job must have kernels of the family, and a GPU has no instruction set to choose."""
        if self.instructions is not None:
            return "instructions are those of CPUs"
        has = FAMILIES.get(scenario.workload, ("gemm", "attention"))
        return None if self.family in has else f"family must be one of {has}, got {self.family!r}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let layers take the other version."""
        return run.knobs.turned(other_version_layers=float(self.layers))

    def perturb(self, job: Job) -> None:
        """Slow one family of kernels down, with an upgrade."""
        job.versions = upgraded(job.versions)
        job.framework.efficiency_q16[self.family] = round(self.efficiency * ONE)

    def witness(self) -> tuple[str, str]:
        """An operator that runs as often as before takes much longer, most take as long."""
        return (
            """
            WITH now AS (SELECT name, count(*) AS calls, sum(duration_ns) AS took
                         FROM trace_events WHERE category IN ('cpu_op', 'kernel') GROUP BY name),
                 then_ AS (SELECT name, count(*) AS calls, sum(duration_ns) AS took
                           FROM reference.trace_events WHERE category IN ('cpu_op', 'kernel')
                           GROUP BY name),
                 ratios AS (SELECT now.took * 1.0 / then_.took AS ratio,
                                   now.took * 1.0 / max(now.took) OVER () AS weight
                            FROM now JOIN then_ USING (name)
                            WHERE abs(now.calls - then_.calls) <= 0.02 * then_.calls
                              AND then_.took > 0)
            SELECT (SELECT max(ratio) > 1.3 FROM ratios WHERE weight > 0.1)
               AND (SELECT max(ratio) FROM ratios WHERE weight > 0.1)
                   > 1.2 * (SELECT median(ratio) FROM ratios)
               AND (SELECT sum(calls) FROM now) < 1.1 * (SELECT sum(calls) FROM then_)
            """,
            "an operator called as often as in the reference takes far longer, most others do not",
        )
