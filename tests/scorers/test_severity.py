"""Recall by severity, against shares counted by hand."""

import pytest

from cases.schema import JOB
from scorers import score
from scorers.settling import FAULT_BUCKETS
from scorers.severity import BANDS


@pytest.fixture
def scored(make, tree):
    """Six faults at 0.05, 0.10, 0.24, 0.3, 0.5 and 0.9 in six groups; those at 0.24 on found."""
    costs = (0.05, 0.10, 0.24, 0.3, 0.5, 0.9)
    labels, answers = [], {}
    for number, cost in enumerate(costs):
        case = f"case{number}"
        fault = make.fault("slow_loader", JOB, cost)
        labels.append(make.label(fault, case_id=case, group=f"g{number}"))
        said = [make.finding("slow_loader", JOB, 0.9)] if cost >= 0.24 else []
        answers[case] = make.says(*said, case_id=case)
    return score(labels, answers, tree)


def test_recall_of_each_band(scored):
    found = {band: scored.metrics[f"recall_at_{band}"] for band in BANDS}
    assert {band: (metric.value, metric.n) for band, metric in found.items()} == {
        "slight": (0.0, 1),  # 0.05
        "moderate": (0.5, 2),  # 0.10 missed, 0.24 found
        "severe": (1.0, 1),
        "crippling": (1.0, 2),
    }
    assert "at least 6 are needed" in found["severe"].note


def test_every_fault_is_in_one_band(scored):
    counted = sum(scored.metrics[f"recall_at_{band}"].n for band in BANDS)
    assert counted == sum(scored.buckets()["faults"][bucket] for bucket in FAULT_BUCKETS) == 6


def test_a_band_without_faults_is_left_out(make, tree):
    label = make.label(make.fault("slow_loader", JOB, 0.3), case_id="one", group="g")
    metrics = score([label], {"one": make.says(case_id="one")}, tree).metrics
    assert {name for name in metrics if name.startswith("recall_at_")} == {"recall_at_severe"}
    healthy = score([make.label(case_id="h", group="g")], {"h": make.says(case_id="h")}, tree)
    assert not [name for name in healthy.metrics if name.startswith("recall_at_")]
