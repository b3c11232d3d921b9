"""Batches copied to the device from pageable memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from injectors.faults.base import Fault, Run

if TYPE_CHECKING:
    from injectors.sim.job import Job


class PageableH2dCopy(Fault):
    """Leave out the pinned memory between loader and device.

    Mechanism: the loader hands out ordinary memory, which the driver must copy once more before
    the device can fetch it, while the rank waits.
    Source: Microsoft study (ICSE 2024), 27.90 % of issues at 1.02x to 1.15x.
    """

    cause: ClassVar[str] = "pageable_h2d_copy"
    simulated: ClassVar[tuple[str, ...] | None] = ("vision", "recommender")
    needs: ClassVar[tuple[str, ...]] = ("cuda",)
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)

    def settings(self) -> dict[str, Any]:
        """Start the job without pinning."""
        return {"pin_memory": False}

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing further: the job was started without."""
        return nullcontext()

    def perturb(self, job: Job) -> None:
        """Copy from ordinary memory."""
        job.loader.pinned = False

    def witness(self) -> tuple[str, str]:
        """Copies to the device are of the pageable kind, where they were pinned before."""
        return (
            """
            WITH now AS (SELECT coalesce(sum(duration_ns), 0) AS t FROM trace_events
                         WHERE name LIKE 'Memcpy HtoD (Pageable%'),
                 then_ AS (SELECT coalesce(sum(duration_ns), 0) AS t FROM reference.trace_events
                           WHERE name LIKE 'Memcpy HtoD (Pageable%')
            SELECT now.t > 2 * then_.t AND now.t > 0 FROM now, then_
            """,
            "copies to the device come from pageable memory, for more than twice the time that"
            " such copies took in the reference",
        )
