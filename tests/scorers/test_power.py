import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from scorers.flips import sign_flip_ps
from scorers.power import groups_needed, power, visible_difference


def parts(mean, spread, count):
    """Group sums whose mean is `mean` and whose standard deviation is `spread`."""
    z = np.tile([1.0, -1.0], count // 2)
    z *= spread / z.std(ddof=1)
    return (mean + z) / count


@pytest.mark.parametrize("effect", [0.1, 0.35, 1.2])
@pytest.mark.parametrize("groups", [6, 30, 400])
def test_power_as_statsmodels_has_it(effect, groups):
    assert power(effect, groups) == pytest.approx(TTestPower().power(effect, groups, 0.05))


@pytest.mark.parametrize("effect", [0.2, 0.5, 0.9])
def test_groups_needed_as_statsmodels_has_it(effect):
    theirs = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert groups_needed(parts(effect, 1.0, 40)) == int(np.ceil(theirs))


def test_visible_difference_as_statsmodels_has_it():
    theirs = TTestPower().solve_power(nobs=40, alpha=0.05, power=0.8)
    assert visible_difference(parts(0.1, 2.0, 40)) == pytest.approx(2 * theirs, rel=1e-4)
    assert visible_difference(np.ones(5)) is None


def test_at_least_six_groups_must_differ():
    rare = np.zeros(60)
    rare[:2] = 1
    # Two of sixty differ: six of 180.
    assert groups_needed(rare) >= 180
    assert groups_needed(np.ones(10)) == 6
    # Nine of ten differ alike: six groups would do for the t test, but seven for six to differ.
    assert groups_needed(np.array([1.0] * 9 + [0])) == 7


def test_no_difference_is_never_seen():
    assert groups_needed(np.array([1.0, -1.0] * 10)) is None
    assert groups_needed(np.zeros(10)) is None
    assert groups_needed(parts(1e-4, 1.0, 10)) is None


def test_the_groups_needed_do_show_the_difference_four_times_of_five():
    rng = np.random.default_rng(0)
    needed = groups_needed(parts(0.5, 1.0, 40))
    suites = rng.choice([-0.5, 1.5], size=(needed, 1000))  # mean 0.5, deviation 1
    assert (sign_flip_ps(suites) < 0.05).mean() == pytest.approx(0.8, abs=0.04)
