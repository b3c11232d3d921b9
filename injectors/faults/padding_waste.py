"""Sequences padded far beyond their length."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class PaddingWaste(Fault):
    """Pad every sequence to `padded_tokens`, at most the job's max_length.

    Mechanism: batches hold the same sequences on more positions, and all layers compute the
    padding too; the loss leaves it out.
    Source: Krell et al. (arXiv 2107.02027), packing against padding.
    """

    cause: ClassVar[str] = "padding_waste"
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    padded_tokens: PositiveInt

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Only where longer sequences fit in is there room to pad."""
        return super().recorded_fits(scenario) and bool(
            getattr(scenario.build_workload(), "max_length", None)
        )

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """There must be padding."""
        used = int(scenario.build_workload().config()["sequence"])
        longer = self.padded_tokens > used
        return None if longer else f"padded_tokens must be above {used}, got {self.padded_tokens}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Pad."""
        return run.knobs.turned(padded_length=float(self.padded_tokens))

    def perturb(self, job: Job) -> None:
        """Compute the padding, too."""
        used = int(job.workload.config()["sequence"])
        job.framework.padded_q16 = self.padded_tokens * ONE // used

    def witness(self) -> tuple[str, str]:
        """More tokens are computed than the sequences have."""
        return (
            """
            SELECT (SELECT sum(tokens) FROM steps)
                   > 1.1 * (SELECT sum(value) FROM runtime
                            WHERE event = 'sequence_lengths' AND detail = 'sum')
               AND (SELECT sum(tokens) FROM reference.steps)
                   < 1.05 * (SELECT sum(value) FROM reference.runtime
                             WHERE event = 'sequence_lengths' AND detail = 'sum')
            """,
            "steps compute more tokens than their sequences have, unlike in the reference",
        )

    def audit_witness(self) -> tuple[str, str]:
        """More tokens are computed than the sequences have."""
        return (
            """
            SELECT (SELECT sum(tokens) FROM steps)
                   > 1.1 * (SELECT sum(value) FROM runtime
                            WHERE event = 'sequence_lengths' AND detail = 'sum')
            """,
            "steps compute more tokens than their sequences have",
        )
