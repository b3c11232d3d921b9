"""A decode that costs more CPU than the loader's workers have."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.sim.job import Job


class DataloaderCpuBound(Fault):
    """Make every sample's augmentation several times as costly.

    Mechanism: more passes of the same decode code, so workers fall behind.
    Source: DS-Analyzer (VLDB 2021), prep stalls; Microsoft study (ICSE 2024), preprocessing.
    """

    cause: ClassVar[str] = "dataloader_cpu_bound"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    decode_passes: int = Field(ge=2)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Raise the number of augmentation passes."""
        return run.knobs.turned(decode_passes=float(self.decode_passes))

    def perturb(self, job: Job) -> None:
        """Decode as many times."""
        job.loader.decode_ns *= self.decode_passes

    def witness(self) -> tuple[str, str]:
        """Workers burn more CPU per batch than before, and the ranks wait for them."""
        return (
            """
            SELECT (SELECT avg(cpu_ns) FROM loader)
                   > 1.4 * (SELECT avg(cpu_ns) FROM reference.loader)
               AND (SELECT sum(read_ns) < 0.5 * sum(fetch_ns) FROM loader)
               AND (SELECT avg(fetch_ns - read_ns) FROM loader)
                   > 1.4 * (SELECT avg(fetch_ns - read_ns) FROM reference.loader)
               AND (SELECT avg(data_wait_ns) FROM steps)
                   > (SELECT avg(data_wait_ns) + 0.03 * avg(duration_ns) FROM reference.steps)
            """,
            "loader workers use far more CPU per batch than in the reference, not in reads, and"
            " ranks wait",
        )

    def audit_witness(self) -> tuple[str, str]:
        """Decoding takes most of the workers' time, and the ranks wait for them."""
        return (
            """
            SELECT (SELECT sum(fetch_ns - read_ns) > 0.7 * sum(fetch_ns) FROM loader)
               AND (SELECT sum(cpu_ns) > 0.4 * sum(fetch_ns) FROM loader)
               AND (SELECT sum(data_wait_ns) > 0.25 * sum(duration_ns) FROM steps)
               AND (SELECT coalesce(sum(cpu_ns), 0) FROM processes
                    WHERE role = 'other' AND nice <= 0 AND name <> 'system')
                   < (SELECT greatest(0.15, 0.02 * max(cores)) * (max(time_ns) - min(time_ns))
                      FROM host)
               AND (SELECT min(affinity) FROM processes WHERE role = 'loader_worker')
                   >= (SELECT least(min(affinity), 4) FROM processes WHERE role = 'rank')
            """,
            "loader workers compute for most of each batch on as many cores as the ranks have, or"
            " on four, which nobody else takes, and ranks wait for batches",
        )
