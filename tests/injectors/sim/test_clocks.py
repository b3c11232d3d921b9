from dataclasses import replace

import numpy as np

from injectors.sim.clocks import Clocks, clocks
from injectors.sim.job import Places

MANY = Places(ranks=64, per_host=1, data=64)


def test_clocks_read_offset_and_drift_of_the_ranks_host():
    found = Clocks(np.array([0, 500]), np.array([1000, -1000]), np.array([0, 0, 1]))
    # After 2 s a clock that gains 1000 ns a second is 2000 ns ahead.
    shown = found.of_ranks(np.array([[2 * 10**9] * 3]))
    assert (shown - 2 * 10**9).tolist() == [[2000, 2000, 500 - 2000]]


def test_the_first_clock_is_right_and_others_are_microseconds_ahead(make_job):
    found = clocks(make_job(places=MANY))
    assert found.offset_ns.min() == 0
    assert 1_000 < found.offset_ns.max() < 200_000
    assert np.abs(found.drift_ppb).max() < 2_000


def test_clocks_follow_from_the_seed(make_job):
    one = make_job(places=MANY)
    assert (clocks(one).offset_ns == clocks(replace(one)).offset_ns).all()
    assert (clocks(one).offset_ns != clocks(replace(one, seed=one.seed + 1)).offset_ns).any()
