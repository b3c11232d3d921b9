"""Prompts that hold up the decoding of others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class PrefillDecodeInterference(Fault):
    """Compute a share of the prompts whole and first instead of in chunks beside decoding.

    Mechanism: such a step holds no decode tokens, so every answer in progress waits for it, and
    its own steps carry less. Long prompts make long waits: see the workload's documents.
    Source: Sarathi-Serve (OSDI 2024), generation stalls; vLLM issue 21495.
    """

    cause: ClassVar[str] = "prefill_decode_interference"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Cut the other prompts only."""
        return run.knobs.turned(chunked_requests=1.0 - self.share)

    def perturb(self, job: Job) -> None:
        """Compute the share of prompts whole."""
        job.serving.unchunked_q16 = round(self.share * ONE)

    def witness(self) -> tuple[str, str]:
        """Prompts are computed in steps that decode nothing although answers are in progress."""
        return (
            """
            WITH now AS (SELECT sum(duration_ns) FILTER (WHERE decode_tokens = 0
                                AND num_requests_running > 1) * 1.0 / sum(duration_ns) AS held
                         FROM engine),
                 then_ AS (SELECT sum(duration_ns) FILTER (WHERE decode_tokens = 0
                                AND num_requests_running > 1) * 1.0 / sum(duration_ns) AS held
                           FROM reference.engine)
            SELECT now.held > 0.1 AND now.held > 2 * coalesce(then_.held, 0) FROM now, then_
            """,
            "much of the time goes to steps that compute prompts and decode nothing, though"
            " answers are in progress",
        )
