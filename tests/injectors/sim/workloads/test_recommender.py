from __future__ import annotations

import pytest

from injectors.sim.job import ONE, Job
from injectors.sim.machine import MACHINES
from injectors.sim.program import Kind, Op, Program
from injectors.sim.program_checks import problems
from injectors.sim.run import seconds
from injectors.sim.workloads.recommender import Recommender

SMALL = Recommender(
    tables=8, groups=2, width=32, lookups=4, bottom=(64,), top=(128,), micro_batch=256
)


def job_of(workload: Recommender, ranks: int = 8) -> Job:
    machine = MACHINES["h100"]
    job = Job(workload, machine, workload.places(ranks, machine), seed=1, steps=4, profiled_steps=2)
    workload.set_up(job)
    return job


def by_path(program: Program) -> dict[str, Op]:
    return {op.path: op for op in program.ops}


def swaps(program: Program) -> list[int]:
    found = [op.label.collective for op in program.ops]
    return [one.bytes for one in found if one and one.op == "all_to_allv"]


def test_is_a_valid_program() -> None:
    assert [*problems(Recommender().compile(job_of(Recommender())))] == []


def test_indices_sums_and_gradients_travel() -> None:
    program = SMALL.compile(job_of(SMALL))
    features = 256 * 8
    # lengths of 4 bytes; indices of 8; sums of 32 bfloat16; their gradients
    assert swaps(program) == [features * 4, features * 4 * 8, features * 32 * 2, features * 32 * 2]


def test_dense_gradients_alone_are_averaged() -> None:
    program = SMALL.compile(job_of(SMALL))
    found = [op.label.collective for op in program.ops]
    averaged = sum(one.bytes for one in found if one and one.op == "allreduce")
    pairs = 9 * 8 // 2
    bottom = (256 * 64 + 64) + (64 * 32 + 32)
    top = ((pairs + 32) * 128 + 128) + (128 + 1)
    assert averaged == 2 * (bottom + top)


def test_the_bottom_layers_run_while_rows_travel() -> None:
    job = job_of(SMALL)
    paths = [op.path for op in SMALL.compile(job).ops]
    sent, waited = "m0/forward/embeddings/sums/swap", "m0/forward/wait_sums"
    between = paths[paths.index(sent) + 1 : paths.index(waited)]
    computed = [path for path in between if not path.startswith("pause/")]
    assert computed and all("/bottom/" in path for path in computed)
    job.framework.overlap = False
    assert f"{sent}.wait" in by_path(SMALL.compile(job))


def test_look_ups_and_updates_grow_with_the_rows_that_a_rank_serves() -> None:
    program = SMALL.compile(job_of(SMALL))
    row = program.work_rows.index("rows")
    served = {op.path.split("/")[-1] for op in program.ops if op.kind == 1 and op.work == row}
    assert {"lookup", "long_rows", "short_rows"} <= served
    assert all("/embeddings/" in op.path for op in program.ops if op.kind == 1 and op.work == row)


def test_one_rank_keeps_its_rows() -> None:
    program = SMALL.compile(job_of(SMALL, ranks=1))
    assert not any(op.kind == Kind.COLLECTIVE for op in program.ops)
    assert [*problems(program)] == []


def test_the_host_learns_how_many_indices_come_once_a_batch() -> None:
    program = SMALL.compile(job_of(SMALL))
    assert sum(op.kind == Kind.SYNC for op in program.ops) == 2  # and reads the loss


@pytest.mark.parametrize("ranks", [3, 24])
def test_tables_must_come_out_even(ranks: int) -> None:
    with pytest.raises(ValueError, match=f"ranks must divide the 1024 parts.*got {ranks}"):
        Recommender().places(ranks, MACHINES["h100"])


def test_a_thousand_ranks_hold_a_part_of_a_table_each() -> None:
    places = Recommender().places(1024, MACHINES["h100"])
    assert (places.data, places.hosts) == (1024, 128)


def test_all_ranks_wait_for_the_one_that_serves_most_rows() -> None:
    job = job_of(Recommender())
    even = seconds(job, Recommender().compile(job))
    job.routing.row_share_q16 = dict.fromkeys(range(8), ONE * 6 // 7) | {3: 2 * ONE}
    assert seconds(job, Recommender().compile(job)) > 1.3 * even


def test_a_slow_host_slows_the_exchange_of_rows() -> None:
    job = job_of(Recommender(), ranks=16)
    usual = seconds(job, Recommender().compile(job))
    job.network.nic_q16 = {1: ONE // 4}
    assert seconds(job, Recommender().compile(job)) > 1.5 * usual
