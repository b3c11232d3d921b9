"""All loader workers on one core."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class WorkerAffinityPinned(Fault):
    """Bind every loader worker to the same core of those that the job may use.

    Mechanism: `sched_setaffinity` in each worker, as a thread-binding library does on import.
    It costs little where workers have only one core to themselves anyway, or are mostly idle.
    Source: pytorch issues 101850, 91989, 107366.
    """

    cause: ClassVar[str] = "worker_affinity_pinned"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    needs: ClassVar[tuple[str, ...]] = ("two_cores",)
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    core: NonNegativeInt = 0

    def misfit(self, scenario: Scenario) -> str | None:
        """The workers must have been able to use more than one core, and be more than one."""
        workers = scenario.ranks * scenario.build_workload().model_dump().get("workers", 0)
        if workers < 2:
            return f"needs at least 2 loader workers, got {workers}"
        own = scenario.cores - scenario.ranks
        if scenario.pinned and own == 1:
            return "pinned ranks leave the workers one core as it is"
        return None

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """There must be several workers."""
        workers = scenario.build_workload().model_dump().get("workers", 0)
        return None if workers > 1 else f"needs at least 2 loader workers, got {workers}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Name the core, by its number on this machine."""
        cores = sorted(os.sched_getaffinity(0))
        return run.knobs.turned(worker_core=float(cores[self.core % len(cores)]))

    def perturb(self, job: Job) -> None:
        """Let all workers of a rank share one core."""
        job.loader.worker_cores = 1

    def witness(self) -> tuple[str, str]:
        """Workers may run on one core and more often wait for it, and ranks wait for them."""
        return (
            """
            WITH now AS (SELECT median(affinity) AS cores,
                                sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                         FROM processes WHERE role = 'loader_worker'),
                 then_ AS (SELECT median(affinity) AS cores,
                                  sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                           FROM reference.processes WHERE role = 'loader_worker')
            SELECT (SELECT now.cores = 1 AND then_.cores > 1
                           AND now.waiting > then_.waiting + 0.05 FROM now, then_)
            """,
            "loader workers may use a single core, where they could use several in the reference,"
            " and wait for it runnable",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same without the workers' earlier cores."""
        return (
            """
            SELECT (SELECT median(affinity) = 1 AND sum(run_delay_ns) > 0.2 * sum(cpu_ns)
                    FROM processes WHERE role = 'loader_worker')
               AND (SELECT count(DISTINCT process) > 1 FROM processes WHERE role = 'loader_worker')
               AND (SELECT min(affinity) > 1 FROM processes WHERE role = 'rank')
               AND (SELECT sum(data_wait_ns) > 0.05 * sum(duration_ns) FROM steps)
            """,
            "several loader workers may use a single core, the ranks several; they wait for it"
            " runnable, and ranks wait for batches",
        )
