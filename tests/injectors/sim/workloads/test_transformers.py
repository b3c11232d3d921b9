from __future__ import annotations

from collections.abc import Callable

import pytest

from injectors.sim.builder import PAUSES, Builder
from injectors.sim.job import ONE, Framework, Job
from injectors.sim.launches import Launch
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Op, Program, Thread
from injectors.sim.program_checks import problems
from injectors.sim.workloads import SIMULATED
from injectors.sim.workloads.data_parallel import DdpTransformer
from injectors.sim.workloads.transformer import Transformer

TRANSFORMERS = [name for name in SIMULATED if name.endswith("transformer")]
STEP_MARKS = {"begin", "data", "optimizer", "checkpoint", "end"}
StepNs = Callable[[Job, Program], int]


def job_of(workload: Transformer, ranks: int = 8, machine: str = "h100", **settings: object) -> Job:
    found = MACHINES[machine]
    job = Job(workload, found, workload.places(ranks, found), seed=1, steps=4, profiled_steps=2)
    workload.set_up(job)
    for name, value in settings.items():
        assert hasattr(job.framework, name)
        setattr(job.framework, name, value)
    return job


def made(name: str, ranks: int = 16, **parameters: object) -> Transformer:
    workload = SIMULATED[name](**parameters)
    assert isinstance(workload, Transformer)
    return workload


def kernels(program: Program) -> list[Op]:
    return [op for op in program.ops if op.kind == Kind.KERNEL]


def device_ns(program: Program) -> int:
    return sum(op.fixed_ns + max(op.compute_ns, op.memory_ns) for op in kernels(program))


def host_ns(program: Program) -> int:
    return sum(op.host_ns + op.launch_ns for op in program.ops)


def named(program: Program, kernel: str) -> list[Op]:
    return [op for op in program.ops if kernel in (op.label.kernel or "")]


SMALL = DdpTransformer(layers=4, hidden=1024, heads=8, sequence=1024, micro_batch=2)


@pytest.mark.parametrize("ranks", [1, 2, 8, 16, 1024])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_programs_are_valid(name: str, ranks: int) -> None:
    workload = made(name)
    program = workload.compile(job_of(workload, ranks))
    assert [*problems(program)] == []
    assert set(program.pauses) == set(PAUSES)
    marks = [op.path for op in program.ops if op.kind == Kind.MARK]
    assert set(marks) >= STEP_MARKS
    assert {path.split("/")[0] for path in marks} - STEP_MARKS == {"forward", "backward"}
    assert program.ops[0].path == "begin"
    assert program.ops[-1].path == "end"
    if ranks == 1:
        assert not program.transfer_rows


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_rank_has_600_to_1500_ops_a_step(name: str) -> None:
    workload = made(name)
    program = workload.compile(job_of(workload, 16))
    own = [op for op in program.ops if op.ranks is None or 0 in op.ranks]
    assert 550 < len(own) < 1500


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_step_takes_20_to_600_ms(name: str, step_ns: StepNs) -> None:
    workload = made(name)
    job = job_of(workload, 16)
    assert 20e6 < step_ns(job, workload.compile(job)) < 600e6


@pytest.mark.parametrize("name", ["ddp_transformer", "tensor_parallel_transformer"])
def test_flops_are_those_of_the_formula(name: str) -> None:
    workload = made(name)
    job = job_of(workload, 8, attention="math")
    tensor = job.places.tensor
    layers = workload.layers_of(Builder(job), workload.micro_batch)
    flops = sum(
        step.cost.flops
        for layer in layers
        for node in layer.nodes
        for step in (*node.forward, *node.backward)
        if isinstance(step, Launch)
    )
    h, s, n, v = workload.hidden, workload.sequence, workload.layers, workload.vocabulary
    tokens = workload.micro_batch * s
    # 72 B s l h^2 (1 + s/6h + V/12lh), Narayanan et al. (2021) without recomputation.
    assert flops * tensor == 72 * tokens * n * h**2 + 12 * tokens * n * s * h + 6 * tokens * h * v


def test_flash_attention_leaves_out_half_of_the_work() -> None:
    flash, maths = (
        sum(op.compute_ns for op in kernels(SMALL.compile(job_of(SMALL, attention=way))))
        for way in ("flash", "math")
    )
    assert flash != maths
    names = [op.label.kernel for op in kernels(SMALL.compile(job_of(SMALL)))]
    assert sum("flash_fwd_kernel" in (name or "") for name in names) == SMALL.layers


def test_math_attention_runs_more_kernels_and_writes_the_scores_out() -> None:
    flash = SMALL.compile(job_of(SMALL))
    maths = SMALL.compile(job_of(SMALL, attention="math"))
    # 7 instead of 1 forward, 9 instead of 3 backward.
    assert len(kernels(maths)) == len(kernels(flash)) + 12 * SMALL.layers
    assert not named(maths, "flash")
    assert device_ns(maths) > 1.15 * device_ns(flash)


def test_unfused_chains_take_more_kernels_of_the_same_products() -> None:
    eager = SMALL.compile(job_of(SMALL, compiled_share_q16=0))
    unfused = SMALL.compile(job_of(SMALL, fused=False))
    # A layer's 2 norms: 8 + 11 instead of 1 + 1; its GELU: 8 + 8 instead of 1 + 1.
    added = SMALL.layers * (2 * 17 + 14)
    assert len(kernels(unfused)) == len(kernels(eager)) + added + 17  # the norm before the head
    assert len(named(unfused, "gemm")) == len(named(eager, "gemm"))
    assert device_ns(unfused) > 1.3 * device_ns(eager)


def test_eager_layers_launch_more_and_take_more_of_the_host() -> None:
    programs = [
        SMALL.compile(job_of(SMALL, compiled_share_q16=share)) for share in (ONE, ONE // 2, 0)
    ]
    counts = [len(kernels(program)) for program in programs]
    # A compiled layer has neither residual as a kernel of its own, forward or backward.
    assert [count - counts[0] for count in counts] == [0, 4 * 2, 4 * 4]
    times = [host_ns(program) for program in programs]
    assert times[0] < times[1] < times[2]
    fused = [len(named(program, "triton_")) for program in programs]
    assert fused[0] == 2 * fused[1] > fused[2] == 0


def test_products_run_in_the_precision_asked_for() -> None:
    for precision, word in (("bf16", "bf16bf16"), ("tf32", "tf32f32"), ("fp32", "sgemm")):
        program = SMALL.compile(job_of(SMALL, precision=precision))
        products = [op for op in named(program, "gemm") if "multi" not in (op.label.kernel or "")]
        # 4 products a layer and that of the logits, each with two backward.
        assert len(products) == 3 * (4 * SMALL.layers + 1)
        assert all(word in (op.label.kernel or "") for op in products)


def test_a_loop_over_parameters_launches_8_kernels_for_each() -> None:
    together = SMALL.compile(job_of(SMALL))
    loop = SMALL.compile(job_of(SMALL, foreach_optimizer=False))
    parameters = 12 * SMALL.layers + 2 + 3  # and embeddings, norm and weight of the head
    fused = len(named(together, "FusedAdam"))
    assert len(kernels(loop)) == len(kernels(together)) - fused + 8 * parameters


def test_cut_micro_batches_do_the_same_work_in_more_launches(step_ns: StepNs) -> None:
    workload = DdpTransformer(layers=4, hidden=512, heads=8, sequence=128, micro_batch=8)
    job, cut = job_of(workload), job_of(workload, micro_batch_split=8)
    whole, parts = workload.compile(job), workload.compile(cut)
    assert parts.batches == whole.batches == 1
    marks = [op.path for op in parts.ops if op.path.startswith("forward/")]
    assert marks == [f"forward/{number}" for number in range(8)]
    assert {op.path for op in whole.ops} <= {op.path for op in parts.ops}
    assert step_ns(cut, parts) > 3 * step_ns(job, whole)


def test_launch_bound_steps_are_as_long_whatever_the_batch(step_ns: StepNs) -> None:
    sizes = {"layers": 8, "hidden": 512, "heads": 8, "sequence": 128, "compiled": False}
    times = []
    for micro_batch in (1, 4, 16, 128):
        workload = DdpTransformer(**sizes, micro_batch=micro_batch)
        job = job_of(workload)
        times.append(step_ns(job, workload.compile(job)))
    assert times[1] == pytest.approx(times[0], rel=0.02)
    assert times[2] == pytest.approx(times[0], rel=0.02)
    assert times[3] > 2 * times[0]


def test_padding_is_computed_too() -> None:
    plain, padded = (
        SMALL.compile(job_of(SMALL, padded_q16=share)) for share in (ONE, ONE * 5 // 4)
    )
    ratio = device_ns(padded) / device_ns(plain)
    assert 1.15 < ratio < 1.3
    assert len(plain.ops) == len(padded.ops)


def test_read_backs_stand_between_layers() -> None:
    plain, read = (SMALL.compile(job_of(SMALL, read_backs=count)) for count in (0, 9))
    syncs = [op.path for op in read.ops if op.kind == Kind.SYNC]
    assert len(syncs) == 1 + 9
    assert sum("/layer1/read_back" in path for path in syncs) in (1, 2)
    assert len(read.ops) == len(plain.ops) + 2 * 9


def test_small_collectives_are_further_all_reduces() -> None:
    program = SMALL.compile(job_of(SMALL, small_collectives=5))
    small = [op for op in program.ops if op.kind == Kind.COLLECTIVE and op.path.startswith("sc")]
    assert [op.label.collective.bytes for op in small if op.label.collective] == [4] * 5


@pytest.mark.parametrize(("share", "nodes_of_a_layer"), [(ONE, 1), (0, 10)])
def test_anomaly_mode_reads_back_after_every_backward_node(
    share: int, nodes_of_a_layer: int, step_ns: StepNs
) -> None:
    job = job_of(SMALL)
    plain = SMALL.compile(job_of(SMALL, compiled_share_q16=share))
    looked = SMALL.compile(job_of(SMALL, compiled_share_q16=share, debug="anomaly"))
    added = sum(op.kind == Kind.SYNC for op in looked.ops) - 1
    assert added == nodes_of_a_layer * SMALL.layers + 3 + 2  # of the head and the embeddings
    assert step_ns(job, looked) > 1.03 * step_ns(job, plain)


def test_blocking_launches_wait_for_every_kernel(step_ns: StepNs) -> None:
    job = job_of(SMALL)
    plain = SMALL.compile(job)
    blocked = SMALL.compile(job_of(SMALL, debug="launch_blocking"))
    waits = sum(op.path.endswith(".blocking") for op in blocked.ops)
    copies = sum(op.label.category == "gpu_memcpy" for op in kernels(plain))
    assert waits == len(kernels(plain)) - copies + sum(k.kind == Kind.COLLECTIVE for k in plain.ops)
    assert step_ns(job, blocked) > 1.1 * step_ns(job, plain)


def test_pageable_batches_block_the_caller() -> None:
    job = job_of(SMALL)
    job.loader.pinned = False
    copies = [op for op in SMALL.compile(job).ops if op.path.startswith("m0/copy/")]
    assert [op.kind for op in copies] == [Kind.KERNEL, Kind.SYNC] * 2
    assert copies[0].label.kernel == "Memcpy HtoD (Pageable -> Device)"


def test_a_checkpoint_is_copied_by_the_ranks_that_save() -> None:
    job = job_of(SMALL)
    job.checkpoint.every, job.checkpoint.bytes = 4, 10**9
    program = SMALL.compile(job)
    copies = [op for op in kernels(program) if op.path.startswith("checkpoint/")]
    assert sum(op.label.bytes for op in copies) == 10**9
    assert {op.ranks for op in copies} == {(0,)}
    assert {program.work_rows[op.work] for op in copies} == {"checkpoint"}
    assert [*problems(program)] == []


def test_later_micro_batches_add_their_gradients() -> None:
    workload = DdpTransformer(layers=2, hidden=512, heads=8, sequence=128, accumulation=3)
    program = workload.compile(job_of(workload))
    added = [op.path for op in program.ops if op.path.endswith(".accumulate")]
    assert len(added) == 2 * (12 * 2 + 5)
    assert not [path for path in added if path.startswith("m0/")]


def test_a_slower_family_slows_its_kernels_alone() -> None:
    plain = SMALL.compile(job_of(SMALL))
    slow = SMALL.compile(job_of(SMALL, efficiency_q16={"attention": ONE // 2}))
    for before, after in zip(plain.ops, slow.ops, strict=True):
        ratio = 2 if "flash_fwd_kernel" in (before.label.kernel or "") else 1
        if "flash_bwd_dq" not in (before.label.kernel or ""):
            assert after.compute_ns == pytest.approx(ratio * before.compute_ns, rel=1e-4)


def test_on_cpus_the_threads_compute_and_wait() -> None:
    workload = DdpTransformer(layers=2, hidden=64, heads=4, sequence=32, vocabulary=128)
    program = workload.compile(job_of(workload, 2, "cpu"))
    assert [*problems(program)] == []
    kinds = {op.kind for op in program.ops}
    assert Kind.INLINE in kinds
    assert not kinds & {Kind.KERNEL, Kind.WAIT_STREAM}
    assert all(op.label.kernel is None for op in program.ops)


@pytest.mark.parametrize(
    ("name", "parameters", "ranks", "message"),
    [
        ("tensor_parallel_transformer", {}, 12, "multiples of tensor, got 12 ranks"),
        ("pipeline_transformer", {}, 6, "multiple of pipeline"),
        ("moe_transformer", {}, 12, "multiples of expert_parallel"),
    ],
)
def test_ranks_must_fit(name: str, parameters: dict[str, int], ranks: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(name, **parameters).places(ranks, MACHINES["h100"])


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="must be a multiple of heads"):
        DdpTransformer(hidden=100, heads=16)


def test_ordinary_settings_are_those_of_the_workload() -> None:
    job = job_of(DdpTransformer(compiled=False, workers=2))
    assert job.framework == Framework(compiled_share_q16=0)
    assert job.loader.workers == 2


@pytest.mark.parametrize("debug", ["", "anomaly"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_spans_nest(name: str, debug: str) -> None:
    workload = made(name, accumulation=2)
    program = workload.compile(job_of(workload, 16, debug=debug))
    place = {op.path: index for index, op in enumerate(program.ops)}
    own = {op.path for op in program.ops if op.ranks is None or 0 in op.ranks}
    for thread in Thread:
        spans = sorted(
            (place[span.first], -place[span.last])
            for span in program.spans
            if span.thread == thread and span.first in own
        )
        assert spans
        open_ends: list[int] = []
        for first, last in spans:
            while open_ends and open_ends[-1] < first:
                open_ends.pop()
            assert not open_ends or -last <= open_ends[-1]
            open_ends.append(-last)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_sequence_numbers_join_a_forward_with_a_backward(name: str) -> None:
    workload = made(name, accumulation=2)
    program = workload.compile(job_of(workload, 16))
    threads: dict[int, list[Thread]] = {}
    for op in program.ops:
        if op.label.sequence is not None:
            threads.setdefault(op.label.sequence, []).append(op.thread)
    assert len(threads) > 2 * workload.layers
    assert {tuple(found) for found in threads.values()} == {(Thread.MAIN, Thread.AUTOGRAD)}
