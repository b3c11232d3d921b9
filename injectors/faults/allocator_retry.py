"""A CUDA allocator that frees its cache and asks again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class AllocatorRetry(Fault):
    """Hold the process's CUDA memory to a little more than it has needed at its peak.

    Mechanism: `torch.cuda.set_per_process_memory_fraction`, with the cache emptied first. As
    lengths vary, no cached block fits the next size, so the allocator gives segments back to
    the driver and retries, which synchronises the device. `headroom` is the share of the peak
    that is left free: the smaller, the more retries; too small ends in an out-of-memory error.
    A simulated retry takes `retry_ms`.
    Versions: the function exists from PyTorch 1.8; expandable segments must be off, since they
    do not fragment.
    Source: pytorch#104509; DeepSpeedExamples#172. Not measured yet: it needs a GPU.
    """

    cause: ClassVar[str] = "allocator_retry_fragmentation"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    needs: ClassVar[tuple[str, ...]] = ("cuda",)
    workloads: ClassVar[tuple[str, ...]] = ("language_model", "image_classifier")
    headroom: PositiveFloat = 0.1
    retry_ms: PositiveFloat = 20

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether sizes vary: blocks of one size always fit."""
        job = scenario.build_workload()
        varied = getattr(job, "mixed_lengths", False) or getattr(job, "sizes", 1) > 1
        return super().recorded_fits(scenario) and varied

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Limit the memory."""
        return run.knobs.turned(memory_headroom=self.headroom)

    def perturb(self, job: Job) -> None:
        """Let allocation fail the more often the less room is left, and fill the memory."""
        job.host.retry_every = max(1, round(self.headroom * 40))
        job.host.retry_ns = round(self.retry_ms * 10**6)
        job.gpus.memory_used_q16 = 64880

    def witness(self) -> tuple[str, str]:
        """The allocator's count of retries grows in steady state."""
        return (
            """
            WITH retries AS (SELECT sum(value) AS n, count(*) AS rows FROM runtime
                             WHERE event = 'allocator_retry')
            SELECT retries.rows >= 3
               AND retries.n > 3 * (SELECT coalesce(sum(value), 0) FROM reference.runtime
                                    WHERE event = 'allocator_retry')
            FROM retries
            """,
            "the allocator frees its cache and retries again and again in steady state",
        )
