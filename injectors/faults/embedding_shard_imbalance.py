"""Embedding rows that everybody asks for, all on one rank."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others
from injectors.sim.job import ONE

if TYPE_CHECKING:
    from injectors.sim.job import Job


class EmbeddingShardImbalance(Fault):
    """Let a share of all look-ups ask for rows of one rank's shard alone.

    Mechanism: that rank looks up, sends and updates more rows, and the others wait for theirs.
    Source: RecShard (ASPLOS 2022), rows differ in how often they are used, balance decides;
    DLRM issue 212 (tables are dealt out without regard to their use).
    """

    cause: ClassVar[str] = "embedding_shard_imbalance"
    simulated: ClassVar[tuple[str, ...] | None] = ("recommender",)
    workloads: ClassVar[tuple[str, ...]] = ("recommendation",)
    least_ranks: ClassVar[int] = 2
    share: float = Field(gt=0, le=1)
    rank: NonNegativeInt = 0

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Make the rank's rows popular."""
        return run.knobs.turned(popular_lookups=self.share, popular_rank=float(self.rank))

    def locus(self, topology: Topology) -> Locus:
        """The rank that holds the popular rows."""
        return Locus(scope="rank", ranks=(self.rank,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Let the share of look-ups go to the one shard."""
        ranks = job.places.ranks
        rest = round((1 - self.share) * ONE)
        job.routing.row_share_q16 = dict.fromkeys(range(ranks), rest)
        job.routing.row_share_q16[self.rank] = rest + ranks * round(self.share * ONE)

    def witness(self) -> tuple[str, str]:
        """One rank serves more rows, and sends more bytes, than before and than others."""
        return (
            """
            WITH now AS (SELECT rank, sum(value) AS served FROM runtime
                         WHERE event = 'embedding_rows' GROUP BY rank),
                 then_ AS (SELECT rank, sum(value) AS served FROM reference.runtime
                           WHERE event = 'embedding_rows' GROUP BY rank),
                 sent AS (SELECT rank, sum(bytes) AS n FROM collectives
                          WHERE op = 'all_to_all' GROUP BY rank),
                 sent_then AS (SELECT rank, sum(bytes) AS n FROM reference.collectives
                               WHERE op = 'all_to_all' GROUP BY rank)
            SELECT (SELECT max(served) / avg(served) FROM now)
                   > 1.1 * (SELECT max(served) / avg(served) FROM then_)
               AND (SELECT max(sent.n * 1.0 / sent_then.n) FROM sent JOIN sent_then USING (rank))
                   > 1.02
            """,
            "one rank serves more embedding rows, and sends more bytes, than in the reference",
        )
