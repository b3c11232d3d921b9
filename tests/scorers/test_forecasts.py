"""Brier over (case, cause), by hand and against scikit-learn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from cases.schema import JOB
from scorers import score

CAUSES = ("slow_link", "lossy_link", "cpu_contention", "gpu_throttle", "slow_loader")


@pytest.fixture
def loss(make, tree):
    def of(label, *findings):
        return score([label], {"case0": make.says(*findings)}, tree).cases["brier"].item()

    return of


def test_by_hand(make, loss):
    case = make.label(make.fault("slow_link"))
    right = make.finding("slow_link", make.at(0), 0.8)
    wrong = make.finding("power_cap", None, 0.3)
    assert loss(case) == 1  # omitted is a chance of 0
    assert loss(case, right) == pytest.approx(0.04)
    assert loss(case, wrong) == pytest.approx(1 + 0.09)
    assert loss(case, right, wrong) == pytest.approx(0.04 + 0.09)
    assert loss(make.label(), wrong) == pytest.approx(0.09)
    assert loss(make.undecidable(), wrong) == pytest.approx(0.09)
    assert loss(make.label()) == 0


def test_the_right_cause_in_a_wrong_place_is_a_wrong_forecast_beside_the_omitted_one(make, loss):
    case = make.label(make.fault("slow_link", make.at(0)))
    assert loss(case, make.finding("slow_link", make.at(3), 0.3)) == pytest.approx(1 + 0.09)
    both = make.finding("slow_link", make.at(3), 0.3), make.finding("slow_link", make.at(0), 0.9)
    assert loss(case, *both) == pytest.approx(0.01 + 0.09)


def test_what_is_right_as_far_as_it_goes_is_no_forecast(make, loss):
    case = make.label(make.fault("slow_link", make.at(0)))
    assert loss(case, make.finding("host_network", make.at(0), 0.9)) == 1
    assert loss(case, make.finding("slow_link", None, 0.9)) == 1


def test_a_cause_counts_once_however_often_it_is_named(make, loss):
    two = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)))
    apart = make.finding(where=make.at(0), confidence=0.8), make.finding(where=make.at(1))
    assert loss(two, *apart) == pytest.approx(0.04)
    united = make.finding(where=make.at(0, 1), confidence=0.8)
    assert loss(two, united) == pytest.approx(0.04)
    wrong = [make.finding("power_cap", make.at(rank), 0.1 * rank) for rank in range(1, 4)]
    assert loss(make.label(), *wrong) == pytest.approx(0.09)


def test_the_truth_is_the_best_forecast(make, loss):
    # A cause that is right in three of four such cases: the mean loss is least at 0.75.
    def mean(confidence):
        here = loss(make.label(make.fault("slow_link")), finding(confidence))
        elsewhere = loss(make.label(make.fault("power_cap")), finding(confidence))
        return (3 * here + elsewhere) / 4

    def finding(confidence):
        return make.finding("slow_link", make.at(0), confidence)

    means = {percent: mean(percent / 100) for percent in range(0, 101, 5)}
    assert min(means, key=means.get) == 75


answers = st.dictionaries(st.sampled_from(CAUSES), st.sampled_from([0.1, 0.5, 0.9]), max_size=5)
cases = st.lists(st.tuples(st.none() | st.sampled_from(CAUSES), answers), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(cases=cases)
def test_as_scikit_learn_has_it(make, tree, cases):
    """Where every place is the whole job, it is their score over all pairs of case and cause."""
    labels, responses, truth, given_chances = [], {}, [], []
    for i, (true, said) in enumerate(cases):
        name = f"case{i}"
        faults = [make.fault(true, JOB)] if true else []
        labels.append(make.label(*faults, case_id=name, group=name))
        findings = [make.finding(cause, JOB, chance) for cause, chance in said.items()]
        responses[name] = make.says(*findings, case_id=name)
        truth += [cause == true for cause in CAUSES]
        given_chances += [said.get(cause, 0.0) for cause in CAUSES]
    metric = score(labels, responses, tree).metrics["brier"]
    theirs = brier_score_loss(truth, given_chances, labels=[False, True]) * len(CAUSES)
    assert metric.value == pytest.approx(theirs)
    assert metric.n == len(cases)
