"""One rank's batches are late, then another one's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat, PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.fetches import read_time_ns
from injectors.sim.job import ONE
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.sim.job import Job


class DataStragglerRank(Fault):
    """Let the reads of one rank at a time wait, each rank for a turn of its batches.

    Mechanism: a wait before each read of that rank's loader workers; the other ranks read at
    full speed and wait in the next collective. As it wanders, no single rank is to blame.
    Source: SPDL documentation, wandering stragglers.
    """

    cause: ClassVar[str] = "data_straggler_rank"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    least_ranks: ClassVar[int] = 2
    latency_ms: PositiveFloat
    turn_batches: PositiveInt = 10

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Raise the latency of one rank after the other."""
        return run.knobs.turned(
            read_latency_s=self.latency_ms / 1e3, latency_turn_batches=float(self.turn_batches)
        )

    def perturb(self, job: Job) -> None:
        """Make the fetches of one rank at a time longer."""
        loader = job.loader
        usual_ns = loader.decode_ns + read_time_ns(job)
        loader.straggler_q16 = ONE + round(self.latency_ms * 10**6) * ONE // usual_ns
        loader.straggler_every = self.turn_batches

    def witness(self) -> tuple[str, str]:
        """One rank waits for data and the others don't, for some steps the one, then another."""
        return (
            """
            WITH waits AS (SELECT step, max(data_wait_ns) - min(data_wait_ns) AS gap,
                                  min(data_wait_ns) AS least, arg_max(rank, data_wait_ns) AS late
                           FROM steps GROUP BY step),
                 wide AS (SELECT late, lag(late) OVER (ORDER BY step) AS before FROM waits
                          WHERE gap > 0.2 * (SELECT avg(duration_ns) FROM steps)),
                 then_ AS (SELECT avg(gap) AS gap FROM
                           (SELECT max(data_wait_ns) - min(data_wait_ns) AS gap
                            FROM reference.steps GROUP BY step))
            SELECT (SELECT avg(waits.gap) FROM waits)
                   > (SELECT gap FROM then_) + 0.04 * (SELECT avg(duration_ns) FROM steps)
               AND (SELECT avg(least) < 0.5 * avg(gap) FROM waits)
               AND (SELECT sum(read_ns) > 0.5 * sum(fetch_ns) FROM loader)
               AND (SELECT count(DISTINCT late) > 1 FROM wide)
               AND (SELECT avg((late <> before)::INT) < 0.35 FROM wide)
            """,
            "some steps long one rank waits for data and the others do not, then another rank does",
        )
