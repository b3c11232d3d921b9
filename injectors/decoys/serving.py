"""What changes in a server's figures while it serves as many tokens as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.decoys.simulated import SimulatedDecoy
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class HealthySurface(SimulatedDecoy):
    """Steps hold other numbers of prompt tokens: first tokens come earlier or later.

    One figure of latency moves and the throughput, which was asked for, does not.
    """

    name: ClassVar[str] = "healthy_surface"
    looks_like: ClassVar[tuple[str, ...]] = ("kv_cache_preemption",)
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    max_num_batched_tokens: PositiveInt

    def perturb(self, job: Job) -> None:
        """Cut prompts elsewhere."""
        job.serving.chunk_tokens = self.max_num_batched_tokens
