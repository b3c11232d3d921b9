"""Recall, precision and F1 by cause, and of what is pooled, by hand."""

import pytest

from cases.schema import JOB
from scorers import score


@pytest.fixture
def metrics(make, tree):
    """Five groups with a slow link each, of which two find it; one with a lossy link.

    The third blames the lossy link instead; the fourth names the whole domain; the fifth says
    nothing. The lossy link is found. A healthy case has a power cap blamed, one a host CPU.
    """
    labels = [make.label(make.fault("slow_link"), case_id=f"c{i}", group=f"g{i}") for i in range(5)]
    labels.append(make.label(make.fault("lossy_link"), case_id="c5", group="g5"))
    labels += [make.label(case_id=f"h{i}", group="g5") for i in range(2)]
    right = make.finding("slow_link", make.at(0))
    said = {
        "c0": [right],
        "c1": [right, make.finding("slow_link", make.at(3), 0.1)],
        "c2": [make.finding("lossy_link", make.at(0))],
        "c3": [make.finding("host_network", make.at(0))],
        "c4": [],
        "c5": [make.finding("lossy_link", make.at(0))],
        "h0": [make.finding("power_cap", JOB)],
        "h1": [make.finding("host_cpu", JOB)],
    }
    answers = {case: make.says(*found, case_id=case) for case, found in said.items()}
    return score(labels, answers, tree).metrics


def value(metrics, name):
    return metrics[name].value, metrics[name].n


def test_a_cause_in_five_groups_has_figures_of_its_own(metrics):
    assert value(metrics, "recall_of_slow_link") == (2 / 5, 5)
    # Two right, one in a wrong place; the domain that was named is no blame of this cause.
    assert value(metrics, "precision_of_slow_link") == (pytest.approx(2 / 3), 3)
    assert metrics["f1_of_slow_link"].value == pytest.approx(2 * (2 / 3) * (2 / 5) / (16 / 15))


def test_the_rest_of_its_domain_is_pooled(metrics):
    assert value(metrics, "recall_of_other_host_network") == (1, 1)
    # The lossy link right once and wrong once, the host's CPU wrong; the domain named for a
    # slow link is right as far as it goes and does not count.
    assert value(metrics, "precision_of_other_host_network") == (pytest.approx(1 / 3), 3)
    assert metrics["f1_of_other_host_network"].value == pytest.approx(1 / 2)


def test_names_are_fixed_by_the_labels(metrics):
    names = {name for name in metrics if name.startswith("precision_of_")}
    assert names == {"precision_of_slow_link", "precision_of_other_host_network"}


def test_a_cause_that_nobody_blamed_has_no_precision_and_an_f1_of_0(make, tree):
    scores = score([make.label(make.fault())], {"case0": make.says()}, tree)
    assert scores.metrics["precision_of_other_host_network"].note == "no finding was made"
    assert scores.metrics["f1_of_other_host_network"].value == 0


def test_recall_of_a_domain_counts_all_its_causes(metrics):
    # Two slow links of five and the lossy one.
    assert value(metrics, "recall_in_host_network") == (3 / 6, 6)
    assert {name for name in metrics if name.startswith("recall_in_")} == {"recall_in_host_network"}
