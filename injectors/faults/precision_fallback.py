"""Arithmetic in a wider type than the job asks for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class PrecisionFallback(Fault):
    """Compute some layers of a bfloat16 job in float32, or a whole float32 job in float64.

    Mechanism: autocast is off in the first `layers` layers; or the parameters, and with them
    every operator, are float64 from the start (`layers` then says nothing). On a simulated GPU
    products in float32 may use its `tensor_cores`, in TF32.
    Source: pytorch issue 149857, norma-core issue 63.
    """

    cause: ClassVar[str] = "precision_fallback"
    simulated: ClassVar[tuple[str, ...] | None] = (*TRANSFORMERS, "vision", "diffusion")
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    to: Literal["float32", "float64"] = "float32"
    layers: PositiveInt = 1
    tensor_cores: bool = False

    def settings(self) -> dict[str, Any]:
        """Parameters in float64 take a job of their own."""
        return {"element_type": self.to} if self.to == "float64" else {}

    def misfit(self, scenario: Scenario) -> str | None:
        """A float32 job has no casts to leave out; without collectives nothing shows float64."""
        if self.to == "float64":
            return None if scenario.ranks > 1 else "float64 shows in collectives of 2 ranks alone"
        narrow = getattr(scenario.build_workload(), "precision", None) == "bfloat16"
        return None if narrow else "float32 is a fallback only from precision bfloat16"

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """No simulated kernel computes in float64."""
        return None if self.to == "float32" else "float64 is not simulated"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Switch autocast off in the layers."""
        if self.to == "float64":
            return nullcontext()
        return run.knobs.turned(full_precision_layers=float(self.layers))

    def perturb(self, job: Job) -> None:
        """Compute these layers in float32; in cut models only the dense ones are layers."""
        job.framework.wide_layers = self.layers
        job.framework.wide_precision = "tf32" if self.tensor_cores else "fp32"

    def witness(self) -> tuple[str, str]:
        """Casts vanish from the trace, or gradients are of a wider type."""
        return (
            """
            SELECT ((SELECT count(*) FROM trace_events WHERE name = 'aten::_to_copy')
                    < 0.85 * (SELECT count(*) FROM reference.trace_events
                              WHERE name = 'aten::_to_copy')
                    AND (SELECT count(*) FROM reference.trace_events WHERE name = 'aten::_to_copy')
                        > 0.02 * (SELECT count(*) FROM reference.trace_events)
                    AND (SELECT count(*) FROM trace_events WHERE name = 'aten::addmm')
                        = (SELECT count(*) FROM reference.trace_events
                           WHERE name = 'aten::addmm'))
                OR coalesce((SELECT max(dtype) FROM collectives) = 'float64'
                            AND (SELECT max(dtype) FROM reference.collectives) <> 'float64', false)
            """,
            "the same matrix products run with fewer casts to the narrow type, or gradients are"
            " float64",
        )
