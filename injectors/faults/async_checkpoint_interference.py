"""A checkpoint that is written beside training and slows it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from injectors.faults.base import Run
from injectors.faults.saving import Saving
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class AsyncCheckpointInterference(Saving):
    """Save often, in a thread of the training process.

    Mechanism: rank 0 copies the model every `every` steps, and a thread pickles it with
    `megabytes` of further state as plain lists, which takes the interpreter lock and the core; a
    simulated thread holds the lock for `lock_share` of the time.
    Source: InternEvo pull request 65, pytorch issue 147039.
    """

    cause: ClassVar[str] = "async_checkpoint_interference"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    lock_share: float = Field(default=0.5, gt=0, le=0.9)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Ask for such checkpoints; one that is being written when they end is left off."""
        return run.knobs.turned(
            checkpoint_every=float(self.every),
            checkpoint_megabytes=self.megabytes,
            checkpoint_thread=1.0,
        )

    def perturb(self, job: Job) -> None:
        """Save from a thread that holds the interpreter a part of the time meanwhile."""
        job.checkpoint.every = self.every
        job.checkpoint.bytes = round(self.megabytes * 10**6)
        job.checkpoint.asynchronous = True
        job.checkpoint.lock_share_q16 = round(self.lock_share * ONE)

    def witness(self) -> tuple[str, str]:
        """Steps that don't save are slow, while the job writes much more than before."""
        return (
            """
            SELECT (SELECT count(*) > 0 FROM steps WHERE checkpoint_ns > 0)
               AND (SELECT sum(checkpoint_ns) < 0.03 * sum(duration_ns) FROM steps WHERE rank = 0)
               AND (SELECT avg(duration_ns) FROM steps WHERE checkpoint_ns = 0 AND step > 0)
                   > 1.04 * (SELECT avg(duration_ns) FROM reference.steps WHERE step > 0)
               AND (SELECT sum(write_bytes) FROM processes WHERE role = 'rank')
                   > 1000000 + 2 * (SELECT sum(write_bytes) FROM reference.processes
                                    WHERE role = 'rank')
            """,
            "a rank writes megabytes that the reference does not and hardly any of it while saving,"
            " and the steps that do not save are longer",
        )
