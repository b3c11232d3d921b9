"""Intervals hold the truth and tests keep their size, in small; `tests.bench.coverage` in full."""

from collections import Counter

import numpy as np
import pytest

from tests.bench.coverage import CORRELATIONS, Draw, coverage, size

FEW, MANY = 40, 12  # trials a setting: from 30 groups on each takes a bootstrap


@pytest.fixture(scope="module")
def pooled():
    """Share of intervals that hold the truth, by name, over all settings."""
    hits, tries = Counter(), Counter()
    settings = [(groups, FEW) for groups in (6, 12, 29)] + [(groups, MANY) for groups in (30, 100)]
    for groups, trials in settings:
        for icc in CORRELATIONS:
            for alike in (True, False):
                for name, (held, tried) in coverage(groups, icc, alike, trials).items():
                    hits[name] += held
                    tries[name] += tried
    return {name: (hits[name] / tries[name], tries[name]) for name in tries}


def test_every_interval_covers(pooled):
    # AUGRC has an interval from 20 groups on: in 6 * (40 + 12 + 12) of these draws.
    assert min(tried for _, tried in pooled.values()) >= 350
    nominal = {name: 0.88 if "90 %" in name else 0.93 for name in pooled}
    low = {name: share for name, (share, _) in pooled.items() if share < nominal[name]}
    assert low == {}


def test_intervals_are_not_as_wide_as_they_like(pooled):
    # Where cases are as alike as assumed at least, intervals should not always hold.
    settings = [coverage(12, 0.6, alike, 100) for alike in (True, False)]
    shares = [held / tried for found in settings for held, tried in found.values()]
    assert np.mean(shares) < 0.985


@pytest.mark.parametrize(("groups", "trials"), [(6, 300), (12, 300), (40, 60)])
@pytest.mark.parametrize("icc", [0.0, 0.6])
def test_equals_are_told_apart_no_more_often_than_one_time_of_twenty(groups, trials, icc):
    one, several = size(groups, icc, groups != 12, trials)
    # One in twenty, and three standard errors of so many trials.
    limit = 0.05 + 3 * (0.05 * 0.95 / trials) ** 0.5
    assert one <= limit
    assert several <= limit


def test_cases_of_a_group_are_as_alike_as_they_were_made():
    rng = np.random.default_rng(0)
    for icc in (0.0, 0.3, 0.6):
        draw = Draw(4000, icc, True, rng)
        hits = (draw.uniform() < 0.3).reshape(4000, 5)
        alike = np.corrcoef(hits.T)[np.triu_indices(5, 1)].mean()
        assert alike == pytest.approx(icc, abs=0.02)
