"""Rows of work against the roofline, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.sim.conditions import Dynamics
from injectors.sim.costs import Costs
from injectors.sim.job import ONE
from injectors.sim.program import Conditions
from injectors.sim.serving.kernels import CONTEXT, PAIRS, TOKENS
from injectors.sim.serving.plan import Plan
from injectors.sim.serving.setup import engine_program, model_of
from injectors.sim.serving.work import StepWork
from tests.injectors.sim.serving.jobs import serving_job

JOB = serving_job(ranks=2, layers=2)
PROGRAM = engine_program(JOB, model_of(JOB))
RIDGE = 712 / 2848 * 1000  # tokens; 712 TF/s over 2848 GB/s, one operation a byte of weights


def _filled(plan: Plan) -> tuple[dict[str, float], Conditions]:
    conditions = Dynamics(JOB, PROGRAM).conditions(0)
    conditions.work_q16[:] = ONE
    conditions.clock_q16 = np.full(2, ONE)
    StepWork(JOB, PROGRAM).fill(conditions, plan)
    rows = zip(PROGRAM.work_rows, conditions.work_q16, strict=True)
    return {name: row[0] / ONE for name, row in rows}, conditions


def test_decoding_replays_a_graph_that_reads_the_weights_once() -> None:
    rows, conditions = _filled(Plan(decode_tokens=61, context_tokens=CONTEXT // 2, answers=61))
    assert rows["graph.gemm"] == 1 and rows["graph.kv"] == 0.5
    assert rows["graph.tokens"] == 64 / TOKENS  # the graph of 64 tokens
    assert {name for name, value in rows.items() if not value} == {
        "eager.tokens", "eager.gemm", "eager.kv", "eager.prefill", "copy.mask", "apply.mask",
    }  # fmt: skip
    assert conditions.transfer_q16[0, 0] == ONE * 64 // TOKENS


def test_many_tokens_cost_their_arithmetic() -> None:
    rows, _ = _filled(Plan(decode_tokens=480, answers=480))
    assert rows["graph.gemm"] == pytest.approx(480 / RIDGE, rel=0.01)


def test_prompts_are_launched_and_cost_what_their_tokens_do() -> None:
    plan = Plan(prefill_tokens=900, decode_tokens=24, attention_pairs=PAIRS // 4, answers=25)
    rows, _ = _filled(plan)
    assert rows["eager.gemm"] == rows["eager.tokens"] == 924 / TOKENS
    assert rows["eager.prefill"] == 0.25
    assert rows["graph.gemm"] == rows["graph.tokens"] == 0


def test_few_launched_tokens_still_read_the_weights() -> None:
    rows, _ = _filled(Plan(prefill_tokens=40, answers=1))
    assert rows["eager.gemm"] == pytest.approx(RIDGE / TOKENS, rel=0.01)


def test_a_lower_clock_slows_arithmetic_alone() -> None:
    conditions = Dynamics(JOB, PROGRAM).conditions(0)
    conditions.work_q16[:] = ONE
    conditions.clock_q16, conditions.memory_q16 = np.array([ONE, 2 * ONE]), np.full(2, ONE)
    work = StepWork(JOB, PROGRAM)
    work.fill(conditions, Plan(decode_tokens=16, answers=16))
    row = PROGRAM.work_rows.index("graph.gemm")
    assert (conditions.work_q16[row] == ONE).all()
    conditions.work_q16[:] = ONE
    work.fill(conditions, Plan(decode_tokens=480, answers=480))
    assert conditions.work_q16[row, 1] == pytest.approx(2 * conditions.work_q16[row, 0], rel=1e-4)


def test_the_model_does_not_run_without_tokens_to_choose() -> None:
    rows, _ = _filled(Plan(prefill_tokens=512))  # a part of a long prompt
    assert rows["sample.gemm"] == rows["sample.tokens"] == 0


def test_the_ridge_is_where_arithmetic_takes_as_long_as_reading() -> None:
    costs = Costs(JOB.machine, JOB.framework)
    assert costs.flops_per_s / costs.bytes_per_s == pytest.approx(RIDGE, rel=0.01)
