import math

import pytest

from cases.errors import HarnessError
from cases.schema import Evidence
from scorers import Response, score
from scorers.evidence import is_supported, is_true


def claim(value, tolerance=0.05):
    return Evidence(sql="SELECT 1", value=value, tolerance=tolerance)


@pytest.mark.parametrize(
    ("value", "tolerance", "found", "true"),
    [
        (100.0, 0.05, 105.0, True),
        (100.0, 0.05, 105.1, False),
        (100.0, 0.9, 105.1, False),  # no claim may be vaguer than 5 %
        (100.0, 0.01, 101.5, False),  # but a claim may be sharper
        (-100.0, 0.05, -96.0, True),
        (-100.0, 0.05, 96.0, False),
        (0.0, 0.05, 0.0, True),
        (0.0, 0.05, 1e-9, False),
        (1.0, 0.05, None, False),
        (1.0, 0.05, math.nan, False),
        (1.0, 0.05, math.inf, False),
    ],
)
def test_true_within_the_lesser_of_tolerance_and_five_percent(value, tolerance, found, true):
    assert is_true(claim(value, tolerance), found) is true


def test_what_is_true_of_the_twin_as_well_supports_nothing():
    assert is_supported(claim(20.0), 20.0, 2.4)
    assert is_supported(claim(20.0), 20.0, None)
    assert not is_supported(claim(20.0), 2.4, 20.0)
    assert not is_supported(claim(1.0), 1.0, 1.0)  # SELECT 1


def test_share_of_all_findings_that_are_supported(make, tree):
    labels = [make.label(make.fault(), case_id="case0"), make.label(case_id="case1")]
    right = make.finding("slow_link", make.at(0)), make.finding("power_cap")
    answers = {
        "case0": make.says(*right, supported=(True, False)),
        "case1": make.says(make.finding(), case_id="case1", supported=(False,)),
    }
    scores = score(labels, answers, tree)
    metric = scores.metrics["evidence_support"]
    assert (metric.value, metric.n) == (pytest.approx(1 / 3), 3)
    assert list(scores.findings["supported"]) == [True, False, False]


def test_without_a_check_there_is_no_figure(make, tree):
    scores = score([make.label(make.fault())], {"case0": make.says(make.finding())}, tree)
    metric = scores.metrics["evidence_support"]
    assert (metric.value, metric.note) == (None, "no finding's evidence was checked")


def test_each_finding_must_have_its_flag(make):
    answer = make.says(make.finding(), make.finding("power_cap"))
    with pytest.raises(HarnessError, match="of 2 findings whether it is, found 1"):
        Response("case0", "ok", answer.diagnosis, 1.0, (True,))
