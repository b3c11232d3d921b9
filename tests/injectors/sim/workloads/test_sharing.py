from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Op, Program, StepTimes, Stream
from injectors.sim.workloads.buckets import bucket_bytes
from injectors.sim.workloads.data_parallel import DdpTransformer
from injectors.sim.workloads.experts import MoeTransformer
from injectors.sim.workloads.fully_sharded import FsdpTransformer
from injectors.sim.workloads.tensor_parallel import TensorParallelTransformer
from injectors.sim.workloads.transformer import Transformer

StepNs = Callable[[Job, Program], int]
MIB = 2**20


def job_of(workload: Transformer, ranks: int = 16, **settings: object) -> Job:
    machine = MACHINES["h100"]
    job = Job(workload, machine, workload.places(ranks, machine), 1, steps=4, profiled_steps=2)
    workload.set_up(job)
    for name, value in settings.items():
        assert hasattr(job.framework, name)
        setattr(job.framework, name, value)
    return job


def collectives(program: Program) -> list[Op]:
    return [op for op in program.ops if op.kind == Kind.COLLECTIVE]


def moved(ops: list[Op]) -> int:
    return sum(op.label.collective.bytes for op in ops if op.label.collective)


def test_buckets_by_hand() -> None:
    # The first is closed by 1 MiB, the next by 4 MiB, what is left is the last one.
    sizes = [MIB // 2, MIB // 2, 3 * MIB, MIB, 5 * MIB, 1]
    assert bucket_bytes(sizes, 4 * MIB) == [(MIB, 2), (4 * MIB, 2), (5 * MIB, 1), (1, 1)]
    assert bucket_bytes(sizes, 1) == [(size, 1) for size in sizes]
    assert bucket_bytes([], 4 * MIB) == []


def test_ddp_averages_all_gradients_once_in_reverse() -> None:
    workload = DdpTransformer(layers=4, hidden=1024, heads=8)
    program = workload.compile(job_of(workload))
    buckets = collectives(program)
    width, layers = 1024, 4
    layer = 12 * width**2 + 13 * width
    whole = layers * layer + 2 * width + (2 * 32_000 + workload.sequence) * width
    assert moved(buckets) == 2 * whole
    # Logits alone close the first bucket. A layer's products are 8.4, 8.4, 2.1 and 6.3 MB from
    # the last one back, 26.2 MB close a bucket; the last one has the tables of embeddings too.
    assert [op.path for op in buckets] == [f"m0/ddp/bucket{i}" for i in range(len(buckets))]
    sizes = [op.label.collective.bytes / 1e6 for op in buckets if op.label.collective]
    assert sizes == pytest.approx([65.5, 33.6, 33.6, 27.3, 76.0], abs=0.1)
    assert {op.stream for op in buckets} == {Stream.DATA_PARALLEL}


def test_smaller_buckets_are_more() -> None:
    workload = DdpTransformer(layers=4, hidden=512, heads=8)
    count = {
        size: len(collectives(workload.compile(job_of(workload, bucket_bytes=size))))
        for size in (MIB, 25 * MIB)
    }
    assert count[MIB] > count[25 * MIB]


@pytest.mark.parametrize(
    "workload", [DdpTransformer(accumulation=2), FsdpTransformer(accumulation=2)]
)
def test_gradients_can_be_shared_after_every_micro_batch(workload: Transformer) -> None:
    once, twice = (
        workload.compile(job_of(workload, sync_every_microbatch=every)) for every in (False, True)
    )
    counts = [Counter(op.label.collective.op for op in collectives(p)) for p in (once, twice)]
    gradients = "allreduce" if isinstance(workload, DdpTransformer) else "_reduce_scatter_base"
    single = 1 if gradients == "_reduce_scatter_base" else 0
    assert counts[1][gradients] == 2 * counts[0][gradients]
    assert counts[1]["_allgather_base"] == counts[0]["_allgather_base"]
    assert counts[0]["allreduce"] == (single or counts[0][gradients])


@pytest.mark.parametrize("workload", [DdpTransformer(), FsdpTransformer()])
def test_without_overlap_all_of_the_communication_is_exposed(
    workload: Transformer, step_ns: StepNs
) -> None:
    job = job_of(workload)
    beside, after = (workload.compile(job_of(workload, overlap=on)) for on in (True, False))
    assert moved(collectives(beside)) == moved(collectives(after))
    total = sum(op.fixed_ns + op.memory_ns for op in collectives(after))
    lost = step_ns(job, after) - step_ns(job, beside)
    assert 0.7 * total < lost < 1.1 * total


def test_ddp_hides_all_but_the_last_buckets(step_ns: StepNs) -> None:
    workload = DdpTransformer()
    alone, many = job_of(workload, 1), job_of(workload)
    program = workload.compile(many)
    exposed = step_ns(many, program) - step_ns(alone, workload.compile(alone))
    last = collectives(program)[-1]
    assert exposed < 2 * (last.fixed_ns + last.memory_ns) + 1_000_000


def test_fsdp_gathers_each_layer_twice_and_scatters_it_once() -> None:
    workload = FsdpTransformer(layers=4)
    program = workload.compile(job_of(workload))
    found = collectives(program)
    counts = Counter(op.label.collective.op for op in found if op.label.collective)
    # 4 layers, embedding and head; the head is still there when the backward begins.
    assert counts == {"_allgather_base": 6 + 5, "_reduce_scatter_base": 6, "allreduce": 1}


def test_fsdp_never_waits_for_gradients_before_the_end(
    second_step: Callable[[Job, Program], StepTimes],
) -> None:
    workload = FsdpTransformer(layers=6)
    job = job_of(workload)
    program = workload.compile(job)
    times = second_step(job, program)
    paths = [op.path for op in program.ops]
    scattered = times.end[paths.index("m0/fsdp/layer3/backward/reduce_scatter"), 0]
    following = times.start[paths.index("m0/backward/layer2/down/dgrad"), 0]
    assert following < scattered


def test_fsdp_ranks_update_their_shards() -> None:
    workload = FsdpTransformer(layers=4)
    work = {
        ranks: sum(
            op.memory_ns
            for op in workload.compile(job_of(workload, ranks)).ops
            if "FusedAdam" in (op.label.kernel or "")
        )
        for ranks in (4, 16)
    }
    assert work[4] == pytest.approx(4 * work[16], rel=0.01)


def test_tensor_parallel_sums_are_on_the_critical_path(step_ns: StepNs) -> None:
    workload = TensorParallelTransformer(layers=6)
    job = job_of(workload, 8)
    program = workload.compile(job)
    sums = [op for op in collectives(program) if op.stream == Stream.TENSOR_PARALLEL]
    # 4 a layer, one for the words and one for the logits' input, in each of 2 micro-batches.
    assert len(sums) == 2 * (4 * 6 + 2)
    assert {op.groups for op in sums} == {"tensor"}
    assert all(len({rank // 8 for rank in group}) == 1 for group in program.groups["tensor"])
    base = step_ns(job, program)
    transfers = sum(op.fixed_ns + op.memory_ns for op in sums)
    job.network.protocol = "LL"
    slow = workload.compile(job)
    longer = [op for op in collectives(slow) if op.stream == Stream.TENSOR_PARALLEL]
    added = sum(op.fixed_ns + op.memory_ns for op in longer) - transfers
    assert step_ns(job, slow) - base == pytest.approx(added, rel=0.1)


def test_experts_exchange_all_tokens_twice_each_way() -> None:
    workload = MoeTransformer(layers=3)
    program = workload.compile(job_of(workload, 16))
    found = [op for op in collectives(program) if op.groups == "expert"]
    tokens = [op for op in found if op.path.endswith("/tokens")]
    assert len(tokens) == 4 * 3
    sent = workload.micro_batch * workload.sequence * workload.top_k
    assert {op.label.collective.bytes for op in tokens if op.label.collective} == {
        sent * workload.hidden * 2
    }
    assert program.groups["expert"] == [[*range(8)], [*range(8, 16)]]
    assert program.groups["expert_data"][0] == [0, 8]


def test_the_work_of_experts_has_a_row_of_its_own() -> None:
    workload = MoeTransformer(layers=3)
    program = workload.compile(job_of(workload, 16))
    row = program.work_rows.index("experts")
    own = {op.label.kernel for op in program.ops if op.kind == Kind.KERNEL and op.work == row}
    assert any("GemmUniversal" in (name or "") for name in own)
    assert all("xmma" not in (name or "") for name in own)


def test_expert_gradients_are_averaged_over_those_who_hold_them() -> None:
    workload = MoeTransformer(layers=3)
    program = workload.compile(job_of(workload, 16))
    sizes: Counter[str] = Counter()
    for op in collectives(program):
        if op.label.collective and op.label.collective.op == "allreduce":
            sizes[op.groups] += op.label.collective.bytes
    held = workload.experts // 8
    assert sizes["expert_data"] == 2 * 3 * held * 2 * workload.hidden * workload.expert_hidden
    assert sizes["world"] == 4
