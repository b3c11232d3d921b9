"""What an engine's own process needs before the model can run: scheduling, grammars, answers."""

from __future__ import annotations

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.program import Conditions
from injectors.sim.serving.plan import Plan

SPREAD_Q16, TAIL_Q16 = 3277, 5243  # 5 %, and a tail of 8 %
QUANTUM_NS = 4_000_000  # the process may lose its core once in each
LOW_BITS = 2**16 - 1


def scheduling_ns(job: Job, plan: Plan, running: int, conditions: Conditions, step: int) -> int:
    """Host time of a step before the model: a part of its own, and more for each request.

    Args:
        job: The engine's.
        plan: What was scheduled.
        running: Requests that are in the batch.
        conditions: The step's, of which the engine's process has those of rank 0.
        step: Number of the engine's step.
    """
    serving = job.serving
    nominal = (
        serving.scheduler_ns
        + serving.per_request_ns * running
        + serving.grammar_ns * plan.constrained
    )
    draw = noise.key(job.seed, "scheduler", step)
    bell = int(noise.NORMAL_Q16[draw >> (64 - noise.TABLE_BITS)]) * SPREAD_Q16
    tail = int(noise.EXPONENTIAL_Q16[draw & (2**noise.TABLE_BITS - 1)]) - ONE
    factor_q16 = max(ONE + (bell + tail * TAIL_Q16 >> 16), ONE // 4)
    spent = (nominal * factor_q16 >> 16) * int(conditions.host_q16[0]) >> 16
    return spent + _away_ns(draw, spent, conditions)


def _away_ns(draw: int, spent_ns: int, conditions: Conditions) -> int:
    """Time without a core, which may be lost once in each 4 ms."""
    chance_q16, longest_ns = int(conditions.preempt_q16[0]), int(conditions.preempt_ns[0])
    if not chance_q16:
        return 0
    away = 0
    for quantum in range(max(spent_ns // QUANTUM_NS, 1)):
        own = noise.mix64(draw + quantum + 1)
        if own & LOW_BITS < chance_q16:
            away += longest_ns * ((own >> 16 & LOW_BITS) + 1) >> 16
    return away
