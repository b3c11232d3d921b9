"""A router that prefers the experts of one rank."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others
from injectors.sim.job import ONE

if TYPE_CHECKING:
    from injectors.sim.job import Job


class MoeExpertImbalance(Fault):
    """Add `bias_logits` to the scores of one rank's experts before the router chooses.

    Mechanism: more tokens travel to that rank, whose experts compute longer while the others
    wait for their rows to come back.
    Source: DeepEP issue 343 (twice as long under imbalance); verl issue 4103.
    """

    cause: ClassVar[str] = "moe_expert_imbalance"
    simulated: ClassVar[tuple[str, ...] | None] = ("moe_transformer",)
    workloads: ClassVar[tuple[str, ...]] = ("mixture_of_experts",)
    least_ranks: ClassVar[int] = 2
    bias_logits: PositiveFloat
    rank: NonNegativeInt = 0

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Bias the router."""
        return run.knobs.turned(expert_bias=self.bias_logits, expert_bias_rank=float(self.rank))

    def locus(self, topology: Topology) -> Locus:
        """The rank of the preferred experts."""
        return Locus(scope="rank", ranks=(self.rank,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks."""
        return others(topology, self.rank)

    def perturb(self, job: Job) -> None:
        """Weigh the rank's experts by exp(bias), in its series to the fourth term."""
        bias, members = self.bias_logits, job.places.expert
        weight = 1 + bias + bias * bias / 2 + bias * bias * bias / 6
        hot = members * weight / (weight + members - 1)
        cold = members / (weight + members - 1)
        for group in job.places.expert_groups():
            if self.rank in group:
                job.routing.expert_share_q16.update(dict.fromkeys(group, round(cold * ONE)))
        job.routing.expert_share_q16[self.rank] = round(hot * ONE)

    def witness(self) -> tuple[str, str]:
        """One rank's experts get more tokens than before, and others wait in the all-to-all."""
        return (
            """
            WITH now AS (SELECT rank, sum(value) AS tokens FROM runtime
                         WHERE event = 'expert_tokens' GROUP BY rank),
                 then_ AS (SELECT rank, sum(value) AS tokens FROM reference.runtime
                           WHERE event = 'expert_tokens' GROUP BY rank),
                 waits AS (SELECT rank, avg(completed_ns - created_ns) AS t FROM collectives
                           WHERE op = 'all_to_all' GROUP BY rank),
                 waited AS (SELECT rank, avg(completed_ns - created_ns) AS t
                            FROM reference.collectives WHERE op = 'all_to_all' GROUP BY rank)
            SELECT (SELECT max(tokens) / avg(tokens) FROM now)
                   > 1.1 * (SELECT max(tokens) / avg(tokens) FROM then_)
               AND (SELECT max(t) FROM waits) > 1.1 * (SELECT max(t) FROM waited)
            """,
            "the tokens that experts get differ between ranks more than in the reference, and a"
            " rank waits longer for its rows",
        )
