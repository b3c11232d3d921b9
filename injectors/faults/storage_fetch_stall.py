"""Slow storage under a data loader."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat

from injectors.faults.base import Fault, Run
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.sim.job import Job


class StorageFetchStall(Fault):
    """Limit the bandwidth of the storage that all loader workers share.

    Mechanism: every read books the device for bytes / bandwidth seconds.
    Source: CoorDL (VLDB 2021), fetch stalls; open_clip issues 899 and 703.
    """

    cause: ClassVar[str] = "storage_fetch_stall"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    megabytes_per_s: PositiveFloat

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Turn the storage's bandwidth down."""
        return run.knobs.turned(storage_bytes_per_s=self.megabytes_per_s * 1e6)

    def perturb(self, job: Job) -> None:
        """Slow every worker's reads."""
        job.loader.storage_bytes_per_s = round(self.megabytes_per_s * 10**6)

    def witness(self) -> tuple[str, str]:
        """Workers wait in reads, on little CPU, and the ranks wait for them."""
        return (
            """
            SELECT (SELECT sum(read_ns) > 0.2 * sum(fetch_ns) FROM loader)
               AND (SELECT quantile_cont(read_ns, 0.25) FROM loader)
                   > 2 * (SELECT avg(read_ns) FROM reference.loader)
               AND (SELECT avg(read_bytes) FROM loader)
                   < 1.5 * (SELECT avg(read_bytes) FROM reference.loader)
               AND (SELECT avg(data_wait_ns) FROM steps)
                   > (SELECT avg(data_wait_ns) + 0.03 * avg(duration_ns) FROM reference.steps)
            """,
            "reads of as many bytes take several times as long, a good part of each batch, and"
            " ranks wait for batches",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same as shares of the job's own time."""
        return (
            """
            SELECT (SELECT sum(read_ns) > 0.5 * sum(fetch_ns) FROM loader)
               AND (SELECT quantile_cont(read_ns * 1.0 / fetch_ns, 0.25) > 0.4 FROM loader)
               AND (SELECT sum(cpu_ns) < 0.5 * sum(fetch_ns) FROM loader)
               AND (SELECT sum(read_bytes) < 0.02 * sum(read_ns) FROM loader)
               AND (SELECT sum(data_wait_ns) > 0.25 * sum(duration_ns) FROM steps)
            """,
            "loader workers read at less than 20 MB/s, for most of each batch and on little CPU,"
            " and ranks wait",
        )
