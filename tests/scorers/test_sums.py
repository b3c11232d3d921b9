import numpy as np
import pytest

from scorers import sums as module
from scorers.intervals import Bounds
from scorers.sum_metrics import ratio
from scorers.sums import standard_error, statistic_bounds


@pytest.mark.parametrize("groups", [1, 5])
def test_under_six_groups_there_is_no_interval(groups):
    note = f"no interval: {groups} groups, at least 6 are needed"
    assert statistic_bounds(np.ones((groups, 2)), ratio) == Bounds(None, None, note)
    units = np.zeros((50, 1))
    units[:groups] = 1
    assert statistic_bounds(np.ones((50, 2)), ratio, units=units) == Bounds(None, None, note)


def test_linearised_error_of_a_mean_is_the_textbook_one():
    values = np.array([1.0, 2, 3, 4, 5, 9])
    sums = np.column_stack([values, np.ones(6)])
    error = standard_error(sums.sum(axis=0), np.cov(sums.T), 6, ratio)
    assert error == pytest.approx(values.std(ddof=1) / 6**0.5)


def test_linearised_error_of_a_ratio_is_the_textbook_one():
    sums = np.random.default_rng(3).uniform(1, 3, size=(12, 2))
    value = sums[:, 0].sum() / sums[:, 1].sum()
    residuals = sums[:, 0] - value * sums[:, 1]
    expected = (12 / 11 * (residuals**2).sum()) ** 0.5 / sums[:, 1].sum()
    assert standard_error(sums.sum(axis=0), np.cov(sums.T), 12, ratio) == pytest.approx(expected)


def test_few_groups_have_t_on_what_is_left_without_each():
    # Seven ones and three zeros: variance 2.1/9, t with 9 degrees at 97.5 % 2.262157.
    sums = np.column_stack([np.repeat([1.0, 0], [7, 3]), np.ones(10)])
    bounds = statistic_bounds(sums, ratio)
    half = 2.262157 * (2.1 / 9 / 10) ** 0.5
    assert (bounds.low, bounds.high) == pytest.approx((0.7 - half, 0.7 + half))


def test_bootstrap_is_seeded_and_leans_to_the_long_tail():
    values = np.random.default_rng(0).exponential(size=40)
    sums = np.column_stack([values, np.ones(40)])
    bounds = statistic_bounds(sums, ratio, seed=1)
    assert bounds == statistic_bounds(sums, ratio, seed=1)
    assert bounds != statistic_bounds(sums, ratio, seed=2)
    assert bounds.high - values.mean() > values.mean() - bounds.low


def test_many_groups_need_no_draws(monkeypatch):
    sums = np.column_stack([np.random.default_rng(0).normal(size=400), np.ones(400)])
    drawn = statistic_bounds(sums, ratio)
    monkeypatch.setattr(module, "MANY_GROUPS", 300)
    plain = statistic_bounds(sums, ratio)
    # Both are 2 * 1.97 standard errors wide, the one with the noise of 2,000 draws.
    assert plain.high - plain.low == pytest.approx(drawn.high - drawn.low, rel=0.08)
    assert plain != drawn


def test_groups_that_are_all_alike_leave_no_doubt():
    for count in (10, 40):
        bounds = statistic_bounds(np.ones((count, 2)), ratio)
        assert (bounds.low, bounds.high) == pytest.approx((1, 1))
