"""Fewer loader workers than the job needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt

from injectors.faults.simulated import SimulatedFault
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class TooFewLoaderWorkers(SimulatedFault):
    """Fewer loader workers than the job needs.

    Mechanism: each batch takes a worker its time, and too few work side by side.
    Source: own measurements, 1 worker against 4: 1.33x.
    """

    cause: ClassVar[str] = "too_few_loader_workers"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workers: NonNegativeInt

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """They must be fewer than planned."""
        planned = scenario.build_workload().model_dump().get("workers", 0)
        fewer = self.workers < planned
        return None if fewer else f"workers must be below {planned}, got {self.workers}"

    def perturb(self, job: Job) -> None:
        """Start fewer workers."""
        job.loader.workers = self.workers
