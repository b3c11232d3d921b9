import numpy as np
import pytest

from scorers.combined import Part, combined_bounds
from scorers.rates import rate_bounds

GROUPS = np.arange(12)
HALF = np.tile([1.0, 0.0], 6)


def test_one_rate_has_its_own_bounds():
    own = rate_bounds(HALF, GROUPS)
    assert combined_bounds([Part(1.0, HALF, GROUPS)], 12) == own
    turned = combined_bounds([Part(-2.0, HALF, GROUPS)], 12)
    assert (turned.low, turned.high) == pytest.approx((-2 * own.high, -2 * own.low))


def test_rates_that_move_together_add_up_and_opposite_ones_cancel():
    own = rate_bounds(HALF, GROUPS)
    same = combined_bounds([Part(1.0, HALF, GROUPS), Part(1.0, HALF, GROUPS)], 12)
    assert (same.low, same.high) == pytest.approx((2 * own.low, 2 * own.high))
    less = combined_bounds([Part(1.0, HALF, GROUPS), Part(-1.0, HALF, GROUPS)], 12)
    assert (less.low, less.high) == pytest.approx((0, 0), abs=1e-7)


def test_rates_of_other_groups_are_independent():
    parts = [Part(0.5, HALF, GROUPS), Part(-0.5, HALF, GROUPS + 12)]
    bounds = combined_bounds(parts, 24)
    reach = rate_bounds(HALF, GROUPS).high - 0.5
    assert (bounds.low, bounds.high) == pytest.approx((-reach / 2**0.5, reach / 2**0.5))


def test_what_was_never_seen_may_still_happen():
    never = np.zeros(12)
    bounds = combined_bounds([Part(1.0, never, GROUPS), Part(-5.0, never, GROUPS)], 12)
    high = rate_bounds(never, GROUPS).high
    assert (bounds.low, bounds.high) == pytest.approx((-5 * high, high))


def test_the_scarcest_rate_decides_whether_there_is_an_interval():
    few = Part(1.0, np.ones(5), np.arange(5))
    assert combined_bounds([Part(1.0, HALF, GROUPS), few], 12).note == (
        "no interval: 5 groups, at least 6 are needed"
    )
