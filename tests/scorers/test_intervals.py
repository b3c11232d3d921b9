import numpy as np
import pytest

from scorers.intervals import Bounds, degrees_of_freedom, deleted_bounds, jackknife_error, too_few


@pytest.mark.parametrize("groups", [1, 5])
def test_under_six_groups_there_is_no_interval(groups):
    note = f"no interval: {groups} groups, at least 6 are needed"
    assert too_few(groups) == Bounds(None, None, note)
    assert deleted_bounds(0.0, np.ones(groups), np.ones((groups, 1))) == Bounds(None, None, note)
    units = np.ones((50, 2))
    units[groups:, 1] = 0  # the kind that the fewest groups have decides
    assert deleted_bounds(0.0, np.ones(50), units) == Bounds(None, None, note)


def test_degrees_of_freedom_by_hand():
    assert degrees_of_freedom(np.ones(6)) == 5
    # (1 + 1 + 4)^2 / (1 + 1 + 16) - 1 = 1; one group alone leaves nothing, but at least 1.
    assert degrees_of_freedom(np.array([1.0, 1, 4])) == 1
    assert degrees_of_freedom(np.array([9.0])) == 1
    assert degrees_of_freedom(np.zeros(6)) == 5


def test_leaving_groups_out_of_a_mean_gives_its_textbook_error():
    values = np.array([1.0, 2, 3, 4, 5, 9])
    apart = (24 - values) / 5 - 4
    # 40 is the sum of squares about 4; 40 / (6 * 5).
    assert jackknife_error(apart) == pytest.approx((40 / 30) ** 0.5)
    bounds = deleted_bounds(4.0, apart, np.ones((6, 1)))
    # Squares 9, 4, 1, 0, 1, 25 (sum 40 of moves times 5): 2 * 40^2 / 724 - 1 = 3.4199 degrees.
    squares = (values - 4) ** 2
    freedom = 2 * squares.sum() ** 2 / (squares**2).sum() - 1
    assert freedom == pytest.approx(3.419889)
    assert bounds.high - 4 == pytest.approx(4 - bounds.low)
    # Student's 97.5 % quantile is 3.1824 at 3 degrees and 2.7764 at 4.
    assert 2.7764 < (bounds.high - 4) / jackknife_error(apart) < 3.1824


def test_groups_of_unlike_size_leave_fewer_degrees_of_freedom():
    apart = np.tile([0.1, -0.1], 3)
    alike = deleted_bounds(0.0, apart, np.full((6, 1), 5.0))
    unlike = deleted_bounds(0.0, apart, np.array([[1.0], [1], [1], [1], [1], [25]]))
    # Five degrees at most: 2.5706; of unlike sizes hardly one: 12.7062.
    assert alike.high == pytest.approx(2.570582 * jackknife_error(apart))
    assert unlike.high == pytest.approx(12.706205 * jackknife_error(apart), rel=0.01)


def test_a_figure_that_hangs_on_one_group_has_no_interval():
    bounds = deleted_bounds(0.0, np.array([np.nan, 0, 0, 0, 0, 0]), np.ones((6, 1)))
    assert (bounds.low, bounds.note) == (None, "no interval: it hangs on a single group")


def test_bounds_are_cut_to_the_range():
    assert Bounds(-0.5, 1.5).within(0, 1) == Bounds(0, 1)
    assert Bounds(-0.5, -0.2).within(0, 1) == Bounds(0, 0)
    assert Bounds(None, None, "why").within(0, 1) == Bounds(None, None, "why")
