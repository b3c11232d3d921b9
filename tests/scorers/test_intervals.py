import numpy as np
import pytest

from scorers.intervals import (
    Bounds,
    intraclass_correlation,
    rate_bounds,
    standard_error,
    statistic_bounds,
    wilson,
)


def ratio(sums):
    return sums[..., 0] / sums[..., 1]


def test_wilson_at_the_ends():
    # 0 of 10 at 1.96: high = z^2/n / (1 + z^2/n) = 0.38416 / 1.38416
    assert wilson(0.0, 10, 1.96) == (0.0, pytest.approx(0.277540))
    assert wilson(1.0, 10, 1.96) == (pytest.approx(0.722460), 1.0)


def test_intraclass_correlation_by_hand():
    # Groups (1, 1), (0, 1), (0, 0).
    # Sums 2, 1, 0; squares over sizes 2 + 0.5 + 0 = 2.5; n*mean^2 = 9/6 = 1.5.
    # Between (2.5 - 1.5)/2 = 0.5; within (3 - 2.5)/3 = 1/6; size 2: (1/3) / (2/3) = 0.5.
    values, groups = np.array([1.0, 1, 0, 1, 0, 0]), np.array([0, 0, 1, 1, 2, 2])
    assert intraclass_correlation(values, groups) == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[1.0, 1, 1, 1], [0.0, 0, 0, 0]])
def test_intraclass_correlation_of_constants_is_zero(values):
    assert intraclass_correlation(np.array(values), np.array([0, 0, 1, 1])) == 0


def test_intraclass_correlation_without_pairs_is_zero():
    assert intraclass_correlation(np.array([1.0, 0, 1]), np.arange(3)) == 0
    assert intraclass_correlation(np.array([1.0, 0, 1]), np.zeros(3, dtype=int)) == 0


def test_groups_widen_a_rate_and_a_group_of_copies_counts_once():
    values = np.tile([0.0, 1.0], 20)
    alone = rate_bounds(values, np.arange(40))
    copies = rate_bounds(np.repeat(values, 5), np.repeat(np.arange(40), 5))
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high))
    mixed = rate_bounds(np.tile(values, 5), np.repeat(np.arange(40), 5))
    assert mixed.high - mixed.low < alone.high - alone.low


@pytest.mark.parametrize("groups", [1, 5])
def test_under_six_groups_there_is_no_interval(groups):
    note = f"no interval: {groups} groups, at least 6 are needed"
    assert rate_bounds(np.ones(groups), np.arange(groups)) == Bounds(None, None, note)
    assert statistic_bounds(np.ones((groups, 2)), ratio) == Bounds(None, None, note)
    assert statistic_bounds(np.ones((50, 2)), ratio, groups=groups) == Bounds(None, None, note)


def test_linearised_error_of_a_mean_is_the_textbook_one():
    values = np.array([1.0, 2, 3, 4, 5, 9])
    sums = np.column_stack([values, np.ones(6)])
    error = standard_error(sums.sum(axis=0), np.cov(sums.T), 6, ratio)
    assert error == pytest.approx(values.std(ddof=1) / 6**0.5)
    bounds = statistic_bounds(sums, ratio)
    # t with 5 degrees of freedom at 97.5 %: 2.570582
    assert (bounds.low, bounds.high) == pytest.approx((4 - 2.570582 * error, 4 + 2.570582 * error))


def test_linearised_error_of_a_ratio_is_the_textbook_one():
    sums = np.random.default_rng(3).uniform(1, 3, size=(12, 2))
    value = sums[:, 0].sum() / sums[:, 1].sum()
    residuals = sums[:, 0] - value * sums[:, 1]
    expected = (12 / 11 * (residuals**2).sum()) ** 0.5 / sums[:, 1].sum()
    assert standard_error(sums.sum(axis=0), np.cov(sums.T), 12, ratio) == pytest.approx(expected)


def test_bootstrap_is_seeded_and_leans_to_the_long_tail():
    values = np.random.default_rng(0).exponential(size=40)
    sums = np.column_stack([values, np.ones(40)])
    bounds = statistic_bounds(sums, ratio, seed=1)
    assert bounds == statistic_bounds(sums, ratio, seed=1)
    assert bounds != statistic_bounds(sums, ratio, seed=2)
    assert bounds.high - values.mean() > values.mean() - bounds.low


def test_groups_that_are_all_alike_leave_no_doubt():
    for count in (10, 40):
        bounds = statistic_bounds(np.ones((count, 2)), ratio)
        assert (bounds.low, bounds.high) == pytest.approx((1, 1))


def clustered_outcomes(rng, groups, size, rate, icc):
    """0/1 outcomes whose correlation within a group is `icc` (beta-binomial)."""
    if icc == 0:
        chances = np.full(groups, rate)
    else:
        spread = 1 / icc - 1
        chances = rng.beta(rate * spread, (1 - rate) * spread, size=groups)
    return (rng.random((groups, size)) < chances[:, None]).astype(float)


@pytest.mark.parametrize("groups", [6, 12, 30, 60])
@pytest.mark.parametrize("icc", [0.0, 0.3, 0.6])
def test_rate_intervals_cover(groups, icc):
    rng = np.random.default_rng(1000 * groups + int(10 * icc))
    labels = np.repeat(np.arange(groups), 5)
    hits, trials = 0, 1000
    for rate in (0.2, 0.5):
        for _ in range(trials // 2):
            values = clustered_outcomes(rng, groups, 5, rate, icc).ravel()
            bounds = rate_bounds(values, labels)
            hits += bounds.low <= rate <= bounds.high
    assert hits / trials >= 0.93


@pytest.mark.parametrize("groups", [6, 12, 30, 60])
@pytest.mark.parametrize("icc", [0.0, 0.6])
def test_mean_intervals_cover(groups, icc):
    rng = np.random.default_rng(2000 * groups + int(10 * icc))
    trials = 300 if groups < 30 else 80
    hits = 0
    for _ in range(trials):
        shared = rng.normal(scale=icc**0.5, size=(groups, 1))
        values = shared + rng.normal(scale=(1 - icc) ** 0.5, size=(groups, 5))
        sums = np.column_stack([values.sum(axis=1), np.full(groups, 5.0)])
        bounds = statistic_bounds(sums, ratio)
        hits += bounds.low <= 0 <= bounds.high
    assert hits / trials >= 0.93


def test_wilson_is_exact_at_the_ends():
    assert wilson(0.0, 37.3, 2.04)[0] == 0.0
    assert wilson(1.0, 37.3, 2.04)[1] == 1.0
