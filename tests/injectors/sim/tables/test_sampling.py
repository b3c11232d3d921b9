import numpy as np
import pytest

from injectors.sim.clocks import clocks
from injectors.sim.job import Places
from injectors.sim.tables.sampling import Samples, growth, interval_ns, reader, samples

MS = 10**6
MANY = Places(ranks=512, per_host=8, data=512)


def test_how_often_agents_read_depends_on_length_and_size_alone(make_job):
    assert interval_ns(make_job()) == 100 * MS
    assert interval_ns(make_job(places=MANY)) == 200 * MS
    assert interval_ns(make_job(steps=500)) == 1000 * MS


def test_samples_increase_and_some_are_late_or_missed(make_job):
    job = make_job(places=MANY)
    found = samples(job, clocks(job), 40 * 10**9)
    gaps = np.diff(found.true_ns, axis=1)
    assert (gaps > 0).all()
    assert gaps.max() > 260 * MS
    missed = 1 - found.taken[:, :-1].mean()
    assert 0.005 < missed < 0.02


def test_samples_are_the_same_whatever_the_run_lasts(make_job):
    job = make_job()
    short, long = (samples(job, clocks(job), end * MS) for end in (1000, 3000))
    assert (long.true_ns[:, :11] == short.true_ns).all()


def test_counters_grow_evenly_within_each_step():
    # Steps of 100 and 300 ns on one rank, 50 and 600 counted in them.
    at = reader(np.array([[100], [400]]), np.array([[0, 50, 100, 250, 400, 999]]))
    assert at.read(np.array([[50], [600]])).tolist() == [[0, 25, 50, 350, 650, 650]]
    assert at.level(np.array([[7], [9]])).tolist() == [[7, 7, 9, 9, 9, 9]]


def test_large_counters_do_not_overflow():
    at = reader(np.array([[10**9]]), np.array([[5 * 10**8]]))
    assert at.read(np.array([[2**55]])).tolist() == [[2**54]]


def test_growth_is_counted_since_the_last_sample_that_was_taken():
    taken = np.array([[True, False, True, True]])
    times = np.array([[0, 10, 20, 30]])
    before = Samples(times, taken, times).before()
    assert before.tolist() == [[-1, 0, 0, 2]]
    assert growth(np.array([[1, 5, 9, 10]]), before).tolist() == [[0, 4, 8, 1]]


@pytest.mark.parametrize("number", [1, 3])
def test_every_so_many_samples_can_be_kept(number):
    times = np.arange(7)[None, :]
    found = Samples(times, times >= 0, times).every(number)
    assert found.clock_ns.tolist() == [list(range(0, 7, number))]
