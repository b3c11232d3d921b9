"""Training that stands still while a checkpoint is written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from injectors.faults.base import Run
from injectors.faults.saving import Saving
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class SyncCheckpoint(Saving):
    """Save often, and wait until the disk has everything.

    Mechanism: rank 0 serialises the model and `megabytes` of further state every `every` steps,
    writes it and calls fsync before the next step; the other ranks wait in a collective.
    Source: Microsoft study (ICSE 2024), 96 s of a 168 s epoch.
    """

    cause: ClassVar[str] = "sync_checkpoint"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Ask for such checkpoints."""
        return run.knobs.turned(
            checkpoint_every=float(self.every),
            checkpoint_megabytes=self.megabytes,
            checkpoint_durable=1.0,
        )

    def perturb(self, job: Job) -> None:
        """Save, and wait for it."""
        job.checkpoint.every = self.every
        job.checkpoint.bytes = round(self.megabytes * 10**6)
        job.checkpoint.asynchronous = False

    def witness(self) -> tuple[str, str]:
        """Checkpoints take a share of a rank's steps that they did not take before."""
        return (
            """
            WITH now AS (SELECT max(share) AS share FROM
                         (SELECT sum(checkpoint_ns) * 1.0 / sum(duration_ns) AS share FROM steps
                          GROUP BY rank)),
                 then_ AS (SELECT max(share) AS share FROM
                           (SELECT sum(checkpoint_ns) * 1.0 / sum(duration_ns) AS share
                            FROM reference.steps GROUP BY rank))
            SELECT now.share > then_.share + 0.045 FROM now, then_
            """,
            "a rank spends over 4.5 % more of its steps' time in writing checkpoints",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same as a share of the job's own time."""
        return (
            """
            SELECT max(share) > 0.045 FROM (SELECT sum(checkpoint_ns) * 1.0 / sum(duration_ns)
                                           AS share FROM steps GROUP BY rank)
            """,
            "a rank spends over 4.5 % of its steps' time in writing checkpoints",
        )
