import numpy as np
import pytest
import statsmodels.api as sm

from scorers.logistic import fit


def fitted(x, right, groups=None, firth=False):
    design = np.column_stack([np.ones(len(x)), x])
    groups = np.arange(len(x)) if groups is None else groups
    return fit(design, np.asarray(right, float), groups, offset=np.zeros(len(x)), firth=firth)


def test_two_by_two_by_hand():
    # At 0 one of four right, at 1 three of four: ln(1/3), and ln 3 - ln(1/3) = 2 ln 3.
    x, right = np.repeat([0.0, 1.0], 4), [1, 0, 0, 0, 1, 1, 1, 0]
    found = fitted(x, right)
    assert found.coefficients == pytest.approx([-np.log(3), 2 * np.log(3)])


def test_penalised_two_by_two_by_hand():
    # Firth's penalty adds one half to each cell: 0.5 of 3 + 1 right at 0, 3.5 of 4 at 1.
    x, right = np.repeat([0.0, 1.0], 3), [0, 0, 0, 1, 1, 1]
    assert fitted(x, right) is None  # separated: without the penalty there is no estimate
    found = fitted(x, right, firth=True)
    assert found.coefficients == pytest.approx([np.log(0.5 / 3.5), 2 * np.log(3.5 / 0.5)])


def test_as_statsmodels_has_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    right = rng.random(200) < 1 / (1 + np.exp(1 - x))
    theirs = sm.Logit(right, sm.add_constant(x)).fit(disp=False).params
    assert fitted(x, right).coefficients == pytest.approx(theirs, abs=1e-8)


def test_moves_without_a_group_are_close_to_those_of_fits_without_it():
    rng = np.random.default_rng(1)
    x, groups = rng.normal(size=120), np.repeat(np.arange(12), 10)
    right = rng.random(120) < 1 / (1 + np.exp(-x))
    found = fitted(x, right, groups)
    for group in range(12):
        kept = groups != group
        left = fitted(x[kept], right[kept], np.unique(groups[kept], return_inverse=True)[1])
        move = left.coefficients - found.coefficients
        assert found.apart[group] == pytest.approx(move, abs=0.02)


def test_what_hangs_on_one_group_is_not_finite():
    x = np.array([0.0, 0, 0, 0, 1, 1])
    groups = np.array([0, 0, 1, 1, 2, 2])
    found = fitted(x, [1, 0, 1, 0, 1, 0], groups)
    assert not np.isfinite(found.apart[2]).any()
    assert np.isfinite(found.apart[:2]).all()


def test_a_constant_column_says_nothing():
    assert fitted(np.ones(4), [1, 0, 1, 0]) is None
