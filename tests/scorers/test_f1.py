import pytest

from scorers.f1 import f1
from scorers.metric import Metric


def rate(value, low, high, note=None):
    return Metric("rate", value, low, high, 20, 10, note)


def test_bounds_are_those_of_both_lower_and_both_upper_ends():
    found = f1("f1", rate(0.5, 0.25, 0.75), rate(0.25, 0.125, 0.5))
    # 2 * 0.125 / 0.75; 2 * 0.03125 / 0.375 and 2 * 0.375 / 1.25.
    assert found.value == pytest.approx(1 / 3)
    assert (found.low, found.high) == pytest.approx((1 / 6, 0.6))
    assert (found.n, found.groups) == (20, 10)


def test_nothing_right_is_0_and_nothing_said_may_have_any_precision():
    assert f1("f1", rate(0.0, 0.0, 0.5), rate(0.0, 0.0, 0.5)).value == 0
    silent = f1("f1", Metric.undefined("p", "no finding was made"), rate(0.0, 0.0, 0.5))
    # 2 * 1 * 0.5 / 1.5
    assert (silent.value, silent.low, silent.high) == (0, 0, pytest.approx(2 / 3))


def test_without_faults_or_bounds_there_are_none():
    assert f1("f1", rate(0.5, 0.2, 0.8), Metric.undefined("r", "no faulty case")).note == (
        "no faulty case"
    )
    few = rate(0.5, None, None, "no interval: 5 groups, at least 6 are needed")
    for pair in ((few, rate(0.5, 0.2, 0.8)), (rate(0.5, 0.2, 0.8), few)):
        found = f1("f1", *pair)
        assert (found.value, found.low, found.note) == (0.5, None, few.note)
