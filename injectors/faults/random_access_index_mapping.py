"""A shuffled index over a file that is made to be scanned."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class RandomAccessIndexMapping(Fault):
    """Let a share of the index of a packed file lead to other places than the next.

    Mechanism: batches are looked up in a permutation, so that a chunk is read and decompressed
    for a sample instead of once in a scan. It takes a workload with the layout `packed`.
    Source: datasets issues 5908 and 7102, shuffled views of columnar files.
    """

    cause: ClassVar[str] = "random_access_index_mapping"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    share: float = Field(default=1.0, gt=0, le=1, description="of the index that is shuffled")

    def misfit(self, scenario: Scenario) -> str | None:
        """Images must be packed into one file."""
        layout = scenario.build_workload().model_dump().get("layout")
        return None if layout == "packed" else f"needs the layout packed, got {layout}"

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Shuffle a share of the index."""
        return run.knobs.turned(remapped_share=self.share)

    def perturb(self, job: Job) -> None:
        """Read whole chunks for few samples."""
        job.loader.extra_reads_q16 = ONE + round(self.share * 15 * ONE)

    def witness(self) -> tuple[str, str]:
        """The same batches take more bytes and more time to read, and ranks wait for them."""
        return (
            """
            SELECT (SELECT avg(read_bytes) FROM loader)
                   > 1.5 * (SELECT avg(read_bytes) FROM reference.loader)
               AND (SELECT avg(read_ns) FROM loader)
                   > 1.5 * (SELECT avg(read_ns) FROM reference.loader)
               AND (SELECT avg(data_wait_ns) FROM steps)
                   > (SELECT avg(data_wait_ns) + 0.03 * avg(duration_ns) FROM reference.steps)
            """,
            "batches of as many samples as in the reference take far more bytes and time to read,"
            " and ranks wait for them",
        )
