"""A collective for every scalar."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.simulated import SimulatedFault
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class ExcessiveSmallCollectives(SimulatedFault):
    """A collective for every scalar.

    Mechanism: metrics, norms or flags are averaged over the ranks one by one; each costs a latency.
    Source: own measurements, a scalar all-reduce for each parameter: 1.33x.
    """

    cause: ClassVar[str] = "excessive_small_collectives"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    collectives: PositiveInt

    def perturb(self, job: Job) -> None:
        """Average so many scalars in each step."""
        job.framework.small_collectives = self.collectives
