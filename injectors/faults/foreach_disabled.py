"""An optimizer that updates one parameter after the other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class ForeachDisabled(Fault):
    """Let AdamW loop over the parameters instead of updating all in one fused call.

    Mechanism: its for-loop implementation issues about ten small operators for each parameter;
    how much that costs is a matter of the model, so there is nothing to set.
    Source: PyTorch documentation of torch.optim, foreach and fused implementations.
    """

    cause: ClassVar[str] = "foreach_disabled"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Switch the implementation."""
        return run.knobs.turned(loop_optimizer=1.0)

    def perturb(self, job: Job) -> None:
        """Update parameter by parameter."""
        job.framework.foreach_optimizer = False

    def witness(self) -> tuple[str, str]:
        """Fused updates give way to updates of single parameters, and only they take longer."""
        return (
            """
            WITH now AS (SELECT count(*) FILTER (starts_with(name, 'aten::_fused_')
                                                 OR starts_with(name, 'aten::_foreach_'))
                                AS together,
                                count(*) FILTER (name = 'aten::addcdiv_') AS single
                         FROM trace_events),
                 then_ AS (SELECT count(*) FILTER (starts_with(name, 'aten::_fused_')
                                                   OR starts_with(name, 'aten::_foreach_'))
                                  AS together,
                                  count(*) FILTER (name = 'aten::addcdiv_') AS single
                           FROM reference.trace_events)
            SELECT now.together < then_.together AND now.single > then_.single + 10
               AND (SELECT avg(optimizer_ns) FROM steps)
                   > 1.2 * (SELECT avg(optimizer_ns) FROM reference.steps)
            FROM now, then_
            """,
            "the optimizer updates parameters one by one where the reference updates them together",
        )

    def audit_witness(self) -> tuple[str, str]:
        """Parameters are updated one by one, none of them together."""
        return (
            """
            SELECT count(*) FILTER (starts_with(name, 'aten::_fused_')
                                    OR starts_with(name, 'aten::_foreach_add')) = 0
               AND count(*) FILTER (name = 'aten::addcdiv_') > 10
            FROM trace_events
            """,
            "the optimizer updates parameters one by one, none of them together",
        )
