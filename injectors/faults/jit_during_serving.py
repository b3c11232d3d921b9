"""Requests that wait while code is compiled for them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class JitDuringServing(Fault):
    """Hand a share of the requests' temperatures to the compiled sampler as Python numbers.

    Mechanism: torch.compile with `dynamic=False` specialises on the number, so the first token
    of a request with a temperature not seen before waits for a compilation; its later tokens
    do not. The computation stays the same.
    Source: vLLM issue 43009 (kernels compiled under live requests).
    """

    cause: ClassVar[str] = "jit_during_serving"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    share: float = Field(gt=0, le=1)

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether anything is compiled, else nothing can be compiled late."""
        backend = getattr(scenario.build_workload(), "compile_sampling", "no")
        return super().recorded_fits(scenario) and backend != "no"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let compiled code see numbers."""
        return run.knobs.turned(plain_number_requests=self.share)

    def perturb(self, job: Job) -> None:
        """Let requests need new code that often."""
        job.compiler.jit_every = max(1, round(8 / self.share))
        job.compiler.jit_ns = 250_000_000

    def witness(self) -> tuple[str, str]:
        """Engine steps hold compilations, each because a guard failed."""
        return (
            """
            WITH inside AS (SELECT r.duration_ns FROM runtime r
                            JOIN engine e ON r.time_ns BETWEEN e.start_ns
                                                           AND e.start_ns + e.duration_ns
                            WHERE r.event = 'recompile' AND r.detail <> '')
            SELECT (SELECT count(*) >= 3 AND sum(duration_ns)
                           > 0.03 * (SELECT max(start_ns + duration_ns) - min(start_ns) FROM engine)
                    FROM inside)
               AND (SELECT coalesce(sum(duration_ns), 0) FROM inside)
                   > 3 * (SELECT coalesce(sum(duration_ns), 0) FROM reference.runtime
                          WHERE event = 'recompile' AND detail <> '')
            """,
            "engine steps stand still while code is compiled, again and again",
        )
