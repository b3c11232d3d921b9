import numpy as np
import pytest

from injectors.sim.clocks import clocks
from injectors.sim.cpu_time import cpu_time
from injectors.sim.expected import expect
from injectors.sim.job import ONE
from injectors.sim.tables.batches import batches, queue_depth
from injectors.sim.tables.loader import loader_table
from injectors.sim.tables.workers import worker_counters

MS = 10**6


def done(run):
    return batches(run, cpu_time(run.job, expect(run.program)))


def test_a_row_is_a_batch_and_its_parts(made):
    run = made()
    found = loader_table(run, clocks(run.job), done(run))
    assert found["batch"].tolist() == [0, 1, 2] * 2
    assert found["worker"].tolist() == [0, 1, 0] * 2
    assert set(found["fetch_ns"]) == {40 * MS}
    assert set(found["read_ns"]) == {10 * MS}
    assert set(found["cpu_ns"]) == {30 * MS}
    sizes = found["read_bytes"] / run.job.loader.read_bytes
    assert sizes.std() > 0 and sizes.to_numpy() == pytest.approx(1, abs=0.08)


def test_the_queue_holds_what_is_ready_when_a_batch_is_asked_for(made):
    run = made()
    # Ready at 40, 40, 45; asked for at 0.9, 100.9 and 200.9 ms (5 ms less a wait of 4).
    depth = queue_depth(run, done(run))
    # Of two workers with a batch ahead each: batches 0 and 1 are not there, 1 and 2 are; batch 3
    # begins when 1 was taken, at 105 ms, and takes 40.
    assert depth[:, 0].tolist() == [0, 2, 2]


def test_a_rank_that_loads_by_itself_has_no_queue(made, job):
    job.loader.workers = 0
    found = loader_table(made(job), clocks(job), done(made(job)))
    assert set(found["worker"]) == {-1}
    assert found["queue_depth"].isna().all()


def test_time_without_a_core_is_no_cpu_time(made, job):
    job.host.hogs = {1: 400}
    found = done(made(job))
    assert found.cpu_ns[:, 0].tolist() == [30 * MS] * 3
    assert (found.cpu_ns[:, 1] < 20 * MS).all()
    assert (found.cpu_ns + found.delay_ns == 30 * MS).all()


def test_random_access_reads_more(made, job):
    plain = done(made(job)).read_bytes
    job.loader.extra_reads_q16 = 3 * ONE
    assert done(made(job)).read_bytes == pytest.approx(3 * plain, rel=1e-4)


def test_workers_count_while_they_fetch(made):
    run = made()
    # Worker 0 fetches from 0 to 40 ms and again from 40 (it was done) to 45.
    times = np.array([[0, 20, 40, 44, 90]]) * MS + np.zeros((2, 1), np.int64)
    found = worker_counters(run, done(run), times)
    assert found.cpu_ns.shape == (4, 5)
    assert found.cpu_ns[0].tolist() == pytest.approx([0, 15e6, 30e6, 54e6, 60e6], rel=1e-5)
    assert found.batches[:2, -1].tolist() == [2, 1]
    assert found.read_bytes[1, -1] == done(run).read_bytes[1, 0]
