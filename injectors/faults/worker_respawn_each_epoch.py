"""Loader workers that live for an epoch only."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run, uneven
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

START_NS, WORKER_NS = 150_000_000, 50_000_000  # of a loader, and of forking each worker


class WorkerRespawnEachEpoch(Fault):
    """End the loader workers after an epoch, or several, and start new ones for the next.

    Mechanism: the loader is made anew, as without persistent workers. It takes a workload with
    epochs (`epoch_batches`); the shorter they are, the more it costs.
    Source: mmhuman3d issue 233, metatrain pull request 1271.
    """

    cause: ClassVar[str] = "worker_respawn_each_epoch"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    every_epochs: PositiveInt = 1

    def misfit(self, scenario: Scenario) -> str | None:
        """The job must have workers and epochs, and trials whole numbers of lives."""
        own = scenario.build_workload().model_dump()
        life = self.every_epochs * own.get("epoch_batches", 0)
        if not life or not own.get("workers"):
            return "needs a workload with workers and epoch_batches above 0"
        return uneven(scenario, life)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """There must be workers."""
        workers = scenario.build_workload().model_dump().get("workers", 0)
        return None if workers else "needs a workload with workers"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Limit the workers' life."""
        return run.knobs.turned(worker_life_epochs=float(self.every_epochs))

    def perturb(self, job: Job) -> None:
        """Start the workers again at every epoch."""
        job.loader.epoch_steps = 8 * self.every_epochs
        job.loader.respawn_ns = START_NS + job.loader.workers * WORKER_NS

    def witness(self) -> tuple[str, str]:
        """More worker processes come and go than in the reference, and single steps wait long."""
        return (
            """
            WITH now AS (SELECT count(DISTINCT process) AS workers FROM processes
                         WHERE role = 'loader_worker'),
                 then_ AS (SELECT count(DISTINCT process) AS workers FROM reference.processes
                           WHERE role = 'loader_worker')
            SELECT (SELECT now.workers >= 2 * then_.workers AND then_.workers > 0 FROM now, then_)
               AND (SELECT max(data_wait_ns) > 3 * median(duration_ns) FROM steps WHERE step > 0)
            """,
            "at least twice as many loader workers as in the reference took part, each for a part"
            " of the run, and some steps wait several times a step's length for data",
        )
