"""Labels from same-seed runs: zones, shares, redundancy, and that the check decides again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.schema import JOB, Fault
from injectors.sim.counterfactual import SEEDS, compare, costs, judge, problems, record

ONE = {"none": [1.0], "0": [1.25]}


def seconds(none, first, second, both):
    return {"none": [none], "0": [first], "1": [second], "0+1": [both]}


@pytest.mark.parametrize(
    ("ratio", "zone"),
    [(1.0, "healthy"), (1.029, "healthy"), (1.03, "grey"), (1.05, "grey"), (1.051, "faulty")],
)
def test_zones_are_those_of_the_label_rule(ratio, zone):
    assert compare([ratio], [1.0]).zone == zone


def test_of_twenty_seeds_the_bounds_decide():
    # Ratios 1.0 and 1.2 in turn: mean 1.1, deviation 0.1026, error 0.02294 -> 99 % low 1.0417.
    found = compare([1.0, 1.2] * 10, [1.0] * SEEDS)
    assert found.ratio == 1.1
    assert found.low_99 == pytest.approx(1.1 - 2.539483191 * 0.1025978 / 20**0.5, abs=1e-7)
    assert found.zone == "grey"
    assert compare([1.1] * SEEDS, [1.0] * SEEDS).zone == "faulty"


@pytest.mark.parametrize("count", [2, 19, 21])
def test_other_numbers_of_seeds_have_no_quantile(count):
    with pytest.raises(ValueError, match="1 or 20 seeds"):
        compare([1.0] * count, [1.0] * count)


def test_one_injection_is_a_fault_or_a_decoy():
    assert judge(ONE, 1).faults == (0,)
    harmless = judge({"none": [1.0], "0": [1.02]}, 1)
    assert (harmless.faults, harmless.decoys) == ((), (0,))
    assert "neither" in judge({"none": [1.0], "0": [1.04]}, 1)


def test_two_that_each_add_are_two_faults_with_shapley_shares():
    # v(0) = 1, v(1) = 2, v(01) = 4: shares (1 + (4 - 2)) / 2 = 1.5 and 2.5, of T = 5.
    table = seconds(1.0, 2.0, 3.0, 5.0)
    assert judge(table, 2).faults == (0, 1)
    assert [cost.value for cost in costs(table, 2, (0, 1))] == [0.3, 0.5]


def test_what_another_hides_is_a_decoy_and_costs_nothing():
    table = seconds(1.0, 1.01, 2.0, 2.0)
    found = judge(table, 2)
    assert (found.faults, found.decoys, found.redundant) == ((1,), (0,), False)
    (cost,) = costs(table, 2, found.faults)
    assert cost.value == pytest.approx((2.0 - 1.01) / 2.0)


def test_two_that_hide_each_other_are_a_redundancy_group():
    found = judge(seconds(1.0, 2.0, 2.0, 2.01), 2)
    assert (found.faults, found.redundant) == ((0, 1), True)


def test_slow_only_together_is_refused():
    # Each is harmless alone; beside the other each adds 20 %: both are needed, both are faults.
    assert judge(seconds(1.0, 1.0, 1.0, 1.2), 2).faults == (0, 1)
    assert "only together" in judge(seconds(1.0, 1.02, 1.02, 1.06), 2)


@given(
    st.lists(st.floats(0.5, 4.0), min_size=4, max_size=4),
)
def test_shares_add_up_to_what_is_lost(values):
    table = seconds(*values)
    shares = costs(table, 2, (0, 1))
    assert sum(s.value for s in shares) == pytest.approx(1 - values[0] / values[3], abs=1e-7)


def label(**changes):
    faults = (Fault(cause="slow_link", locus=JOB, lost_fraction=costs(ONE, 1, (0,))[0]),)
    return record([7], ["slow_link"], ONE, 1.2).model_copy(update=changes), faults


def test_a_sound_label_has_no_problems():
    assert list(problems(*label())) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seconds": {"none": (1.0,), "0": (1.0,)}}, "seeds say healthy"),
        ({"seconds": {"none": (1.0,), "0": (1.5,)}}, "the label states"),
        ({"injections": ("padding_waste",)}, "make .* faults"),
        ({"ablated": {"dataloader_cpu_bound": (0.8,)}}, "may be faster without"),
    ],
)
def test_a_label_that_its_seeds_do_not_bear_out_is_told(changes, words):
    recorded, faults = label(**changes)
    found = list(problems(recorded, faults))
    assert found
    assert any(re.search(words, line) for line in found)


def test_every_set_and_every_seed_must_be_there():
    with pytest.raises(ValueError, match="must have 1 seeds"):
        record([7], ["slow_link"], {"none": [1.0], "0": [1.25]}, 1.2, {"x_y": [1.0, 2.0]})
    with pytest.raises(KeyError):
        record([7], ["slow_link", "nic_degraded"], ONE, 1.2)
