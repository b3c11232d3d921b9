"""A checkpoint that is written beside training and slows it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat, PositiveInt

from cases.schema import JOB, Locus, Topology
from injectors.faults.base import Fault, Run

if TYPE_CHECKING:
    from injectors.scenario import Scenario


class AsyncCheckpointInterference(Fault):
    """Save often, in a thread of the training process.

    Mechanism: rank 0 copies the model every `every` steps, and a thread pickles it with
    `megabytes` of further state as plain lists, which takes the interpreter lock and the core.
    Source: InternEvo pull request 65, pytorch issue 147039.
    """

    cause: ClassVar[str] = "async_checkpoint_interference"
    every: PositiveInt
    megabytes: PositiveFloat

    def misfit(self, scenario: Scenario) -> str | None:
        """Trials must be whole periods."""
        steps = scenario.trials.steps
        return f"trials.steps must be a multiple of {self.every}" if steps % self.every else None

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Ask for such checkpoints; one that is being written when they end is left off."""
        return run.knobs.turned(
            checkpoint_every=float(self.every),
            checkpoint_megabytes=self.megabytes,
            checkpoint_thread=1.0,
        )

    def locus(self, topology: Topology) -> Locus:
        """The rank that saves, or the whole job where there is no other."""
        return JOB if len(topology.ranks) == 1 else Locus(scope="rank", ranks=(0,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one that saves."""
        return tuple(place.rank for place in topology.ranks if place.rank != 0)

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
