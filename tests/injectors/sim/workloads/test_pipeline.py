from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.job import ONE, Job
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Program, StepTimes
from injectors.sim.program_checks import problems
from injectors.sim.workloads.pipeline import PipelineTransformer
from injectors.sim.workloads.schedule import Task, global_order, split, stage_order

Times = Callable[[Job, Program], StepTimes]


def job_of(workload: PipelineTransformer, ranks: int = 4) -> Job:
    machine = MACHINES["h100"]
    job = Job(workload, machine, workload.places(ranks, machine), 1, steps=4, profiled_steps=2)
    workload.set_up(job)
    return job


def worked_ns(workload: PipelineTransformer, job: Job, second_step: Times) -> list[int]:
    """Time from the batch to the end of each stage's last backward."""
    program = workload.compile(job)
    ends, paths = second_step(job, program).end, [op.path for op in program.ops]
    begun = ends[paths.index("data")]
    last = workload.accumulation - 1
    return [
        int((ends[paths.index(f"backward/{last}/s{stage}")] - begun)[rank])
        for stage in range(job.places.pipeline)
        for rank in job.places.ranks_of_stage(stage)[:1]
    ]


def test_three_stages_by_hand() -> None:
    words = [
        " ".join(f"{task.half[0]}{task.micro_batch}" for task in stage_order(stage, 3, 4))
        for stage in range(3)
    ]
    assert words == [
        "f0 f1 f2 b0 f3 b1 b2 b3",
        "f0 f1 b0 f2 b1 f3 b2 b3",
        "f0 b0 f1 b1 f2 b2 f3 b3",
    ]


@given(st.integers(1, 8), st.integers(1, 12))
def test_the_common_order_keeps_every_stages_own_and_every_need(stages: int, count: int) -> None:
    order = global_order(stages, count)
    assert len(order) == 2 * stages * count
    place = {task: index for index, task in enumerate(order)}
    for stage in range(stages):
        own = [task for task in order if task.stage == stage]
        assert own == stage_order(stage, stages, count)
    for task, index in place.items():
        if task.half == "forward" and task.stage:
            assert place[task._replace(stage=task.stage - 1)] < index
        if task.half == "backward":
            assert place[Task(task.stage, "forward", task.micro_batch)] < index
            if task.stage < stages - 1:
                assert place[task._replace(stage=task.stage + 1)] < index


def test_layers_are_shared_out_with_the_head_counted() -> None:
    assert split(16, 4, 0, 0) == [4, 4, 4, 4]
    assert split(15, 4, ONE, 0) == [4, 4, 4, 3]
    assert split(14, 4, 2 * ONE, 0) == [4, 4, 4, 2]
    assert split(15, 4, ONE, 3) == [3, 3, 3, 6]
    assert split(5, 1, ONE, 0) == [5]
    with pytest.raises(ValueError, match="every stage must have a layer"):
        split(4, 4, 0, 1)


def test_the_bubble_is_that_of_the_schedule(second_step: Times) -> None:
    # Of m micro-batches on p stages, m + p - 1 follow each other; the first stage ends last.
    took = {}
    for count in (8, 16):
        workload = PipelineTransformer(layers=16, vocabulary=2_000, accumulation=count)
        took[count] = worked_ns(workload, job_of(workload), second_step)[0]
    each = (took[16] - took[8]) / 8
    bubble = (took[8] - 8 * each) / (8 * each)
    assert bubble == pytest.approx(3 / 8, abs=0.04)


def test_layers_moved_to_the_last_stage_hold_all_others_up(second_step: Times) -> None:
    workload = PipelineTransformer()
    job, uneven = job_of(workload), job_of(workload)
    uneven.framework.last_stage_layers_q16 = 2 * ONE
    assert workload.split(4) == [4, 4, 4, 3]
    assert workload.split(4, moved=2) == [4, 3, 3, 5]
    even = worked_ns(workload, job, second_step)[0]
    # 5 layers and a head worth 1.3 of them, instead of 3 and 1.3, set the pace: 6.3 / 4.3.
    assert 1.2 < worked_ns(workload, uneven, second_step)[0] / even < 1.47


def test_every_send_comes_before_its_receive_and_pairs_neighbours() -> None:
    workload = PipelineTransformer()
    job = job_of(workload, 16)
    program = workload.compile(job)
    assert [*problems(program)] == []
    sends = {op.path: op for op in program.ops if op.kind == Kind.SEND}
    receives = [op for op in program.ops if op.kind == Kind.RECV]
    assert len(sends) == len(receives) == 2 * 3 * workload.accumulation
    for op in receives:
        sent = sends[op.pair]
        assert (op.ranks, op.peers) == (sent.peers, sent.ranks)
        stages = {job.places.stage(rank) for rank in (*(op.ranks or ()), *op.peers)}
        assert len(stages) == 2
        assert max(stages) - min(stages) == 1


def test_gradients_are_averaged_within_each_stage() -> None:
    workload = PipelineTransformer()
    program = workload.compile(job_of(workload, 16))
    assert program.groups["data"] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    ranks = {op.ranks for op in program.ops if op.kind == Kind.COLLECTIVE and "ddp" in op.path}
    assert ranks == {tuple(group) for group in program.groups["data"]}


def test_each_rank_knows_its_stage() -> None:
    workload = PipelineTransformer()
    assert [workload.stage(rank, 8) for rank in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
