"""Another process on the same GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others
from injectors.sim.names import SERVING, TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class GpuNoisyNeighbor(Fault):
    """Let other processes multiply matrices on one rank's GPU.

    Mechanism: the driver gives each process time slices, so the job's kernels start later.
    Source: ByteDance (OSDI 2025), background matrix products: 1.16, 1.40 and 2.03 times.
    """

    cause: ClassVar[str] = "gpu_noisy_neighbor"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING + SERVING
    needs: ClassVar[tuple[str, ...]] = ("cuda", "nvml")
    rank: NonNegativeInt = 0
    processes: PositiveInt = 1

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Let the neighbours compute."""
        return run.device_neighbours(self.rank, self.processes)

    def locus(self, topology: Topology) -> Locus:
        """The GPU that is shared."""
        gpu = topology.ranks[self.rank].gpu
        return Locus(scope="gpu", gpus=(gpu,)) if gpu else Locus(scope="rank", ranks=(self.rank,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one whose GPU is shared."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Let foreign processes share the GPU."""
        job.gpus.neighbours[self.rank] = self.processes

    def witness(self) -> tuple[str, str]:
        """More processes use a device than in the reference, and its clock is no lower."""
        return (
            """
            WITH now AS (SELECT rank, avg(processes) AS users, avg(sm_clock_mhz) AS clock
                         FROM gpu GROUP BY rank),
                 was AS (SELECT rank, avg(processes) AS users, avg(sm_clock_mhz) AS clock
                         FROM reference.gpu GROUP BY rank)
            SELECT coalesce((SELECT bool_or(now.users > was.users + 0.5
                                            AND now.clock > 0.95 * was.clock)
                             FROM now JOIN was USING (rank)), false)
            """,
            "another process uses a rank's GPU, at an unchanged clock",
        )

    def audit_witness(self) -> tuple[str, str]:
        """A device has more users than the job has ranks on it."""
        return (
            """
            SELECT min(users) > 0 AND max(users) > 1
            FROM (SELECT rank, median(processes) AS users FROM gpu GROUP BY rank)
            """,
            "more than one process uses a rank's device, and no device lacks its own",
        )
