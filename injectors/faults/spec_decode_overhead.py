"""Speculative decoding that is not repaid."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class SpecDecodeOverhead(Fault):
    """Draft tokens that the model mostly rejects.

    Mechanism: the model's first layers draft `draft_tokens` tokens one after the other, and the
    whole model verifies them in one go; what is rejected was computed in vain.
    Source: vLLM issues 21278, 24322 and 4266; drafting after LayerSkip (ACL 2024).
    """

    cause: ClassVar[str] = "spec_decode_overhead"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    draft_tokens: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Draft before every decode."""
        return run.knobs.turned(draft_tokens=float(self.draft_tokens))

    def perturb(self, job: Job) -> None:
        """Draft in vain."""
        job.serving.draft_tokens = self.draft_tokens
        job.serving.acceptance_q16 = ONE // 5

    def witness(self) -> tuple[str, str]:
        """Many more tokens are drafted than in the reference, and most are rejected."""
        return (
            """
            SELECT (SELECT sum(draft_tokens) > 0.2 * sum(decode_tokens)
                       AND sum(accepted_tokens) < 0.6 * sum(draft_tokens) FROM engine)
               AND (SELECT sum(draft_tokens - accepted_tokens) * 1.0 / sum(decode_tokens)
                    FROM engine)
                   > 2 * (SELECT sum(draft_tokens - accepted_tokens) * 1.0 / sum(decode_tokens)
                          FROM reference.engine)
            """,
            "many tokens are drafted and most of them rejected, more than in the reference",
        )
