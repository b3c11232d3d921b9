"""An engine's step as ops: what is there under which setting."""

from __future__ import annotations

import pytest

from injectors.sim.job import ONE, Job
from injectors.sim.nccl import Nccl, Shape
from injectors.sim.program import Kind, Op, Program
from injectors.sim.program_checks import problems
from injectors.sim.serving.kernels import TOKENS
from injectors.sim.serving.part import engine_part
from injectors.sim.serving.program import compile_engine
from injectors.sim.serving.setup import model_of
from tests.injectors.sim.serving.jobs import serving_job


def _program(job: Job) -> Program:
    return compile_engine(engine_part(job, 0), model_of(job))


def _ops(program: Program, way: str, kind: Kind = Kind.KERNEL) -> list[Op]:
    rows = program.work_rows
    return [op for op in program.ops if rows[op.work].startswith(f"{way}.") and op.kind == kind]


def test_kernels_of_a_layer() -> None:
    program = _program(serving_job(layers=3))
    assert list(problems(program)) == []
    # Norm, qkv, positions, cache, attention, projection; norm, gate and up, activation, down.
    assert len(_ops(program, "graph")) == 3 * 10
    # Prompts have attention of their own; the embedding comes before all layers.
    assert len(_ops(program, "eager")) == 1 + 3 * 11


def test_a_graph_is_launched_once() -> None:
    graph = _ops(_program(serving_job(layers=3)), "graph")
    assert [op.label.runtime for op in graph] == ["cudaGraphLaunch"] + [None] * 29
    assert sum(op.launch_ns > 0 for op in graph) == 1 and all(not op.label.cpu_ops for op in graph)
    eager = _ops(_program(serving_job(layers=3)), "eager")
    assert all(op.launch_ns > 0 and op.label.cpu_ops for op in eager)


def test_weights_are_read_at_the_bandwidth() -> None:
    job = serving_job(layers=3)
    graph = _ops(_program(job), "graph")
    reading = sum(op.memory_ns for op in graph if op.path.rpartition("/")[2] in PRODUCTS)
    weights = 3 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336) * 2
    assert reading == pytest.approx(weights / (3350e9 * 0.85) * 1e9, rel=1e-3)


PRODUCTS = ("qkv", "o_proj", "gate_up", "down")


def test_ranks_sum_twice_in_a_layer_and_hold_a_part_of_it() -> None:
    whole, half = _program(serving_job(layers=3)), _program(serving_job(ranks=2, layers=3))
    assert not _ops(whole, "graph", Kind.COLLECTIVE)
    sums = _ops(half, "graph", Kind.COLLECTIVE)
    assert len(sums) == 2 * 3 and half.groups == {"tensor": [[0, 1]]}
    by_path = {op.path: op for op in half.ops}
    for op in _ops(whole, "graph"):
        if op.path.rpartition("/")[2] in PRODUCTS:
            assert by_path[op.path].memory_ns == pytest.approx(op.memory_ns / 2, rel=0.01)


def test_sums_cost_what_nccl_takes_for_as_many_tokens() -> None:
    job = serving_job(ranks=4, layers=1)
    (first, _) = _ops(_program(job), "eager", Kind.COLLECTIVE)
    size = TOKENS * 4096 * 2
    choice = Nccl(job.machine, job.network).choose("all_reduce", size, Shape(4, 1, 4))
    assert (first.fixed_ns, first.memory_ns) == (choice.fixed_ns, choice.bytes_ns)


def test_unfused_layers_have_more_kernels_on_the_same_paths() -> None:
    job = serving_job(layers=2)
    fused = {op.path for op in _ops(_program(job), "eager")}
    job.framework.fused = False
    unfused = {op.path for op in _ops(_program(job), "eager")}
    # Two norms of four kernels each and two for the activation, instead of three.
    assert len(unfused) == len(fused) + 2 * (2 * 3 + 1)
    assert {path for path in fused if "norm" not in path and not path.endswith("act")} <= unfused


def test_layers_that_are_not_compiled_take_the_operators_host_time() -> None:
    job = serving_job(layers=2)
    compiled = sum(op.host_ns for op in _ops(_program(job), "eager"))
    job.framework.compiled_share_q16 = ONE // 2
    assert sum(op.host_ns for op in _ops(_program(job), "eager")) > 1.5 * compiled


def test_plain_attention_writes_its_scores_and_copies_shared_heads() -> None:
    job = serving_job(layers=1)
    job.framework.attention = "math"
    program = _program(job)
    names = [op.path.rpartition("/")[2] for op in _ops(program, "eager")]
    assert [name for name in names if name.startswith("attention.prefill")] == [
        "attention.prefill.scores",
        "attention.prefill.softmax",
        "attention.prefill.values",
    ]
    decode = [op for op in _ops(program, "graph") if "attention.decode" in op.path]
    flash = [op for op in _ops(_program(serving_job(layers=1)), "graph") if "decode" in op.path]
    # Four query heads share one of keys: it is read, written fourfold, and read fourfold.
    assert sum(op.memory_ns for op in decode) == pytest.approx(9 * flash[0].memory_ns, rel=0.01)


def test_each_draft_is_a_shallow_pass_of_its_own() -> None:
    job = serving_job(layers=20, draft_tokens=3)
    drafts = _ops(_program(job), "draft")
    # A tenth of the depth and a tenth of the vocabulary: two layers and a projection a pass.
    assert len(drafts) == 3 * (2 * 10 + 1)
    assert sum(op.label.runtime == "cudaGraphLaunch" for op in drafts) == 3


def test_blocking_launches_wait_for_each_kernel_that_there_is() -> None:
    job = serving_job(layers=2)
    job.framework.debug = "launch_blocking"
    program = _program(job)
    waits = _ops(program, "eager", Kind.SYNC)
    assert len(waits) == len(_ops(program, "eager"))
    assert len(_ops(program, "graph", Kind.SYNC)) == 1


def test_pauses_stand_in_every_program() -> None:
    names = {op.path for op in _program(serving_job(layers=1)).ops if op.kind == Kind.PAUSE}
    common = ("idle", "schedule", "jit", "gc", "poll", "suspend", "extra", "retry")
    assert {f"pause/{name}" for name in common} <= names
