"""Ranks whose sequences differ in length at the same time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.job import ONE

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class SequenceLengthImbalance(Fault):
    """Give the ranks micro-batches of equally many tokens in sequences of different lengths.

    Mechanism: in the healthy job all ranks go through the same order of lengths, so each step
    is as long on all of them; here each rank is `shift` micro-batches ahead of the one before.
    Every rank does the same work over a round of lengths, but attention costs the sum of squared
    lengths, and in each step the others wait for the rank with the longest sequences, which is
    not the same in the next one. The job must have mixed lengths, and trials must span whole
    rounds.
    Source: ByteDance (OSDI 2025), sequence length imbalance.
    """

    cause: ClassVar[str] = "sequence_length_imbalance"
    simulated: ClassVar[tuple[str, ...] | None] = (
        "ddp_transformer",
        "fsdp_transformer",
        "tensor_parallel_transformer",
    )
    workloads: ClassVar[tuple[str, ...]] = ("language_model",)
    least_ranks: ClassVar[int] = 2
    shift: PositiveInt = 1

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Only mixed lengths can be dealt out unevenly."""
        return super().recorded_fits(scenario) and bool(
            getattr(scenario.build_workload(), "mixed_lengths", False)
        )

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Move the ranks apart."""
        return run.knobs.turned(length_shift=float(self.shift))

    def perturb(self, job: Job) -> None:
        """Let the summed squares differ between ranks."""
        job.framework.length_spread_q16 = self.shift * ONE // 8

    def witness(self) -> tuple[str, str]:
        """In the same step ranks differ in squared lengths, not in tokens."""
        return (
            """
            WITH now AS (SELECT avg((high > 1.3 * low)::INT) AS apart FROM (
                             SELECT max(value) AS high, min(value) AS low FROM (
                                 SELECT value, row_number() OVER (PARTITION BY rank
                                                                  ORDER BY time_ns) AS number
                                 FROM runtime WHERE event = 'sequence_lengths'
                                                AND detail = 'sum of squares')
                             GROUP BY number)),
                 then_ AS (SELECT avg((high > 1.3 * low)::INT) AS apart FROM (
                               SELECT max(value) AS high, min(value) AS low FROM (
                                   SELECT value, row_number() OVER (PARTITION BY rank
                                                                    ORDER BY time_ns) AS number
                                   FROM reference.runtime WHERE event = 'sequence_lengths'
                                                            AND detail = 'sum of squares')
                               GROUP BY number))
            SELECT now.apart > 0.3 AND then_.apart < 0.1
               AND (SELECT max(tokens) = min(tokens) FROM steps)
            FROM now, then_
            """,
            "ranks get equally many tokens, but in the same micro-batch their sequences differ in"
            " length",
        )

    def audit_witness(self) -> tuple[str, str]:
        """In the same step ranks differ in squared lengths."""
        return (
            """
            SELECT avg((high > 1.3 * low + 1)::INT) > 0.3 FROM (
                SELECT max(value) AS high, min(value) AS low FROM (
                    SELECT value, row_number() OVER (PARTITION BY rank ORDER BY time_ns) AS number
                    FROM runtime WHERE event = 'sequence_lengths' AND detail = 'sum of squares')
                GROUP BY number)
            """,
            "in the same micro-batch the sequences of the ranks differ in length",
        )
