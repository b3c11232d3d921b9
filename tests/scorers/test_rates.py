import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from scorers.intervals import Bounds
from scorers.rates import intraclass_correlation, rate_bounds, wilson


def test_wilson_at_the_ends():
    # 0 of 10 at 1.96: high = z^2/n / (1 + z^2/n) = 0.38416 / 1.38416
    assert wilson(0.0, 10, 1.96) == (0.0, pytest.approx(0.277540))
    assert wilson(1.0, 10, 1.96) == (pytest.approx(0.722460), 1.0)


def test_wilson_is_exact_at_the_ends():
    assert wilson(0.0, 37.3, 2.04)[0] == 0.0
    assert wilson(1.0, 37.3, 2.04)[1] == 1.0


@pytest.mark.parametrize("n", [1, 7, 40, 1000])
def test_wilson_as_statsmodels_has_it(n):
    for count in {0, 1, n // 3, n - 1, n}:
        theirs = proportion_confint(count, n, alpha=0.05, method="wilson")
        assert wilson(count / n, n, 1.959963984540054) == pytest.approx(theirs, abs=1e-12)


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


def test_groups_of_unlike_size_by_hand():
    # Six groups of 1, 1, 1, 1, 1 and 5, correlation at least 0.3. Variances 1 (five times) and
    # 5 (1 + 4 * 0.3) = 11, sum 16: n = 10^2 / 16 = 6.25; degrees 16^2 / (5 + 121) - 1 = 1.0317.
    values = np.array([1.0, 0, 1, 0, 1, 1, 0, 1, 0, 0])
    groups = np.array([0, 1, 2, 3, 4, 5, 5, 5, 5, 5])
    assert intraclass_correlation(values, groups) < 0.3
    bounds = rate_bounds(values, groups)
    # t at 97.5 % with 1.0317 degrees: 11.8186. t^2/n = 22.3485; half = 11.8186/23.3485 times the
    # root of 0.25/6.25 + 22.3485/25 = 0.93394.
    assert (bounds.low, bounds.high) == pytest.approx((0.5 - 0.48918, 0.5 + 0.48918), abs=1e-4)


def test_weights_count_as_so_many_alike():
    # Ten groups of one unit; weights 3 and 1. Rate 3 * 5 / 20; n = 20^2 / (5 * 9 + 5) = 8.
    values, weights = np.tile([1.0, 0], 5), np.tile([3.0, 1], 5)
    bounds = rate_bounds(values, np.arange(10), weights=weights)
    # Variances 9 and 1: degrees 50^2 / (5 * 81 + 5) - 1 = 5.0976, t = 2.5559.
    assert (bounds.low, bounds.high) == pytest.approx(wilson(0.75, 8, 2.5559), abs=1e-4)
    alike = rate_bounds(values, np.arange(10), weights=np.full(10, 7.0))
    assert alike == rate_bounds(values, np.arange(10))


@pytest.mark.parametrize("groups", [1, 5])
def test_under_six_groups_there_is_no_interval(groups):
    note = f"no interval: {groups} groups, at least 6 are needed"
    assert rate_bounds(np.ones(groups), np.arange(groups)) == Bounds(None, None, note)
    # Numbers that no unit has are no groups.
    assert rate_bounds(np.ones(groups), 3 * np.arange(groups)) == Bounds(None, None, note)
