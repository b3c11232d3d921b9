"""Autograd's anomaly detection, left on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run, uneven
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class DebugEnvLeftOn(Fault):
    """Run steps under autograd's anomaly mode.

    Mechanism: forward keeps a stack for each node and backward looks for NaN in what each
    node returns; in every `every`-th step, so trials must span a multiple of it.
    Source: PyTorch performance tuning guide, debugging interfaces; pytorch issue 50820.
    """

    cause: ClassVar[str] = "debug_env_left_on"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    every: PositiveInt = 1

    def misfit(self, scenario: Scenario) -> str | None:
        """Trials must be whole periods."""
        return uneven(scenario, self.every)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Switch the mode on."""
        return run.knobs.turned(anomaly_every=float(self.every))

    def perturb(self, job: Job) -> None:
        """Look for anomalies in every step."""
        job.framework.debug = "anomaly"

    def witness(self) -> tuple[str, str]:
        """Looks for NaN appear in the trace."""
        return (
            """
            SELECT (SELECT count(*) FROM trace_events WHERE name = 'aten::isnan')
                   > 20 + 3 * (SELECT count(*) FROM reference.trace_events
                               WHERE name = 'aten::isnan')
            """,
            "profiled steps look for NaN after each backward node, which the reference does not",
        )

    def audit_witness(self) -> tuple[str, str]:
        """Looks for NaN after each backward node."""
        return (
            """
            SELECT (SELECT count(*) FROM trace_events WHERE name = 'aten::isnan')
                   > 5 * (SELECT count(DISTINCT step) FROM trace_events)
            """,
            "profiled steps look for NaN many times each",
        )
