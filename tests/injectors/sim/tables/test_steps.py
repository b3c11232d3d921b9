import numpy as np

from injectors.sim.clocks import clocks
from injectors.sim.program import Kind, Op
from injectors.sim.run import Collected
from injectors.sim.tables.loads import computed_tokens
from injectors.sim.tables.steps import lap_paths, phases, step_table

MS = 10**6


def test_phases_are_the_laps_between_marks(made):
    found = phases(made())
    lengths = {name: values[1].tolist() for name, values in found.items()}
    assert lengths == {
        "data_wait_ns": [5 * MS] * 2,
        "forward_ns": [30 * MS] * 2,
        "backward_ns": [50 * MS] * 2,
        "optimizer_ns": [10 * MS] * 2,
        "checkpoint_ns": [0] * 2,
        "waiting": [0] * 2,
        "rest": [5 * MS] * 2,
    }


def test_a_wait_for_data_that_the_device_hides_is_no_phase(made):
    run = made()
    second = Op(Kind.NEXT_BATCH, "m1/next_batch", batch=1)
    more = (Op(Kind.MARK, "forward/1"), Op(Kind.MARK, "backward/1"))
    run.program.ops[7:7] = [second, *more]
    # The device is at backward/0 until 85 ms; rank 0 has the batch at 80 ms, rank 1 at 87 ms.
    begins = run.marks["begin"]
    run.taken = np.stack([run.taken[:, 0], begins + np.array([80, 87]) * MS], axis=1)
    run.marks["forward/1"], run.marks["backward/1"] = begins + 88 * MS, begins + 90 * MS
    found = phases(run)
    assert found["data_wait_ns"][0].tolist() == [5 * MS, 7 * MS]
    assert found["forward_ns"][0].tolist() == [33 * MS, 31 * MS]
    assert found["optimizer_ns"][0].tolist() == [5 * MS, 5 * MS]


def test_waiting_for_a_neighbour_is_no_phase_of_a_pipeline(made):
    run = made()
    run.program.ops.insert(6, Op(Kind.RECV, "recv", ranks=(1,), peers=(0,)))
    ends = run.marks["begin"] + 75 * MS
    run.collectives["recv"] = Collected(ends, ends, ends, ends)
    found = phases(run)
    assert found["backward_ns"][0].tolist() == [50 * MS, 10 * MS]
    assert found["waiting"][0].tolist() == [0, 40 * MS]


def test_ranks_with_the_same_laps_are_taken_together(made):
    program = made().program
    assert [ranks for _, ranks in lap_paths(program)] == [[0, 1]]
    program.ops.insert(6, Op(Kind.RECV, "recv", ranks=(1,), peers=(0,)))
    assert sorted(ranks for _, ranks in lap_paths(program)) == [[0], [1]]


def test_only_steps_that_save_have_a_checkpoint(made, job):
    run = made(job)
    run.marks["checkpoint"] = run.marks["optimizer"] + 2 * MS
    assert not phases(run)["checkpoint_ns"].any()
    job.checkpoint.every = 3
    assert phases(run)["checkpoint_ns"][:, 0].tolist() == [0, 0, 2 * MS]


def test_rows_carry_the_hosts_clocks_and_whole_steps(made, job):
    run = made()
    own = clocks(job)
    table = step_table(run, own, computed_tokens(run))
    assert table["rank"].tolist() == [0, 0, 0, 1, 1, 1]
    assert table["start_ns"].iloc[3] == own.offset_ns[1]
    assert (table["duration_ns"] - 100 * MS).abs().max() < 1000  # what a clock drifts
    assert set(table["tokens"]) == {2 * 4 * 2048}
    assert set(table["span"]) == {1}


def test_padding_is_computed_too(made, job):
    job.framework.padded_q16 = 3 * 65536 // 2
    assert set(computed_tokens(made(job)).ravel()) == {2 * 4 * 3072}
