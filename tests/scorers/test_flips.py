import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from scorers.flips import holm, sign_flip_p, sign_flip_ps


def test_sign_flips_by_hand():
    # Sums of +-1 +-2 +-3 reach 6 in 2 of 8 ways, and 4 or more in 4 of 8.
    assert sign_flip_p(np.array([1.0, 2, 3])) == 0.25
    assert sign_flip_p(np.array([-1.0, 2, 3])) == 0.5
    assert sign_flip_p(np.array([0.0, 1, -1])) == 1
    assert sign_flip_p(np.zeros(0)) == 1


def test_random_flips_come_close_to_all_of_them():
    parts = np.array([1.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1])
    # Of 2^14 sign patterns those with |sum| >= 8: twice C(14, 0..3) = 2 * (1 + 14 + 91 + 364).
    assert sign_flip_p(parts, seed=0) == pytest.approx(940 / 2**14, abs=0.01)
    assert sign_flip_p(parts, seed=0) == sign_flip_p(parts, seed=0)


def test_the_observed_signs_are_one_of_the_flips():
    assert sign_flip_p(np.ones(40)) == 1 / 10_000


def test_columns_are_tested_as_if_alone():
    rng = np.random.default_rng(0)
    few, many = np.zeros(30), rng.normal(0.3, 1, 30)
    few[:6] = 1
    p_values = sign_flip_ps(np.column_stack([few, many, -many]))
    assert p_values[0] == 2 / 2**6
    assert p_values[1] == p_values[2] == sign_flip_p(many)


def test_holm_by_hand():
    # 0.01 * 4, 0.02 * 3, 0.03 * 2, and 0.5 * 1; none below the one before.
    assert holm([0.03, 0.01, 0.5, 0.02]) == [0.06, 0.04, 0.5, 0.06]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_as_statsmodels_has_it(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
