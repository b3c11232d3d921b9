"""What an engine's own process needs before the model can run: scheduling, grammars, answers."""

from __future__ import annotations

from injectors.sim import noise
from injectors.sim.expected import expect
from injectors.sim.job import ONE, Job
from injectors.sim.program import Conditions, Program
from injectors.sim.serving.plan import Plan

SPREAD_Q16, TAIL_Q16 = 3277, 5243  # 5 %, and a tail of 8 %
LOW_BITS = 2**16 - 1


class HostTime:
    """Times the work of rank 0's process, which is also the engine's own."""

    def __init__(self, job: Job, program: Program) -> None:
        self._job = job
        self._chance_ns = int(expect(program).chance_ns[0])

    def scheduling_ns(self, plan: Plan, running: int, conditions: Conditions, step: int) -> int:
        """Host time of a step before the model: a part of its own, and more for each request.

        Args:
            plan: What was scheduled.
            running: Requests that are in the batch.
            conditions: The step's.
            step: Number of the engine's step.
        """
        serving = self._job.serving
        nominal = (
            serving.scheduler_ns
            + serving.per_request_ns * running
            + serving.grammar_ns * plan.constrained
            + serving.scan_ns * plan.unindexed
        )
        draw = noise.key(self._job.seed, "scheduler", step)
        bell = int(noise.NORMAL_Q16[draw >> (64 - noise.TABLE_BITS)]) * SPREAD_Q16
        tail = (int(noise.EXPONENTIAL_Q16[draw % 2**noise.TABLE_BITS]) - ONE) * TAIL_Q16
        factor_q16 = max(ONE + (bell + tail >> 16), ONE // 4)
        spent = (nominal * factor_q16 >> 16) * int(conditions.host_q16[0]) >> 16
        return spent + self._away_ns(draw, spent, conditions)

    def _away_ns(self, draw: int, spent_ns: int, conditions: Conditions) -> int:
        """Time without a core: after each piece of CPU time it may be lost."""
        own = noise.mix64(draw)
        pieces = max(spent_ns // self._chance_ns, 1)
        losses = int(conditions.preempt_q16[0]) * pieces + (own & LOW_BITS) >> 16
        return losses * (int(conditions.preempt_ns[0]) * ((own >> 16 & LOW_BITS) + 1) >> 16)
