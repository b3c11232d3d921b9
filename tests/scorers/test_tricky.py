"""The answers that are easily judged wrongly, each with all that follows from it, by hand."""

import pytest
from pydantic import ValidationError

from cases.schema import JOB, Diagnosis
from scorers import score


@pytest.fixture
def judged(make, tree):
    """Scores of one case: fault buckets, finding statuses, and metrics by name."""

    def of(label, *findings):
        scores = score([label], {"case0": make.says(*findings)}, tree)
        values = {name: metric.value for name, metric in scores.metrics.items()}
        return list(scores.faults["bucket"]), list(scores.findings["status"]), values

    return of


def test_two_ranks_and_both_named(make, judged):
    case = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)))
    buckets, statuses, values = judged(
        case, make.finding(where=make.at(0)), make.finding(where=make.at(1))
    )
    assert (buckets, statuses) == (["found"] * 2, ["true"] * 2)
    assert values["recall_cause_and_locus"] == values["precision_cause_and_locus"] == 1


def test_one_cause_on_two_ranks_as_one_finding(make, judged):
    case = make.label(make.fault(where=make.at(0, 1)))
    buckets, statuses, _ = judged(case, make.finding(where=make.at(0, 1)))
    assert (buckets, statuses) == (["found"], ["true"])
    apart = judged(case, make.finding(where=make.at(0)), make.finding(where=make.at(1)))
    assert apart[:2] == (["found"], ["true"] * 2)
    twice = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)))
    united = judged(twice, make.finding(where=make.at(0, 1), confidence=0.8, lost_fraction=0.3))
    assert united[:2] == (["found"] * 2, ["true"])
    # One finding for both faults: each is given half of its share, 0.15 of 0.2.
    assert united[2]["lost_fraction_error"] == pytest.approx(0.05)
    assert united[2]["ac_at_3"] == united[2]["mrr"] == 1


def test_the_right_cause_on_the_victim(make, judged):
    case = make.label(make.fault("cpu_contention", make.at(2), victims=(0, 1, 3)))
    buckets, statuses, values = judged(case, make.finding("cpu_contention", make.at(0, 1, 3), 0.9))
    assert (buckets, statuses) == (["mislocated"], ["false"])
    assert (values["recall_cause"], values["recall_cause_and_locus"]) == (1, 0)
    assert (values["precision_cause"], values["precision_cause_and_locus"]) == (1, 0)
    assert (values["misled_rate"], values["net_benefit_w1"]) == (1, -1)
    assert values["misattributed_time"] == 0  # the cause itself was not blamed on another
    assert values["brier"] == pytest.approx(1 + 0.81)


def test_a_root_and_its_symptom_both_named(make, judged):
    case = make.label(make.fault("slow_link", symptoms=("collective_wait",)))
    root = make.finding("slow_link", make.at(0), 0.9)
    as_roots = judged(case, root, make.finding("collective_wait", JOB, 0.6))
    assert as_roots[:2] == (["found"], ["true", "false"])
    assert (as_roots[2]["misled_rate"], as_roots[2]["precision_cause"]) == (1, 0.5)
    symptom = make.finding("collective_wait", JOB, 0.6, role="symptom", caused_by="slow_link")
    told = judged(case, root, symptom)
    assert told[:2] == (["found"], ["true", "neutral"])
    assert (told[2]["misled_rate"], told[2]["precision_cause"]) == (0, 1)
    assert told[2]["net_benefit_w1"] == 1


def test_an_acceptable_answer_beside_the_true_one(make, judged):
    case = make.label(make.fault("slow_link", acceptable=("lossy_link",)))
    true = make.finding("slow_link", make.at(0), 0.6)
    other = make.finding("lossy_link", make.at(0), 0.4)
    buckets, statuses, values = judged(case, true, other)
    assert (buckets, statuses) == (["found"], ["true", "neutral"])
    assert (values["precision_cause"], values["misled_rate"]) == (1, 0)
    assert judged(case, other)[:2] == (["found"], ["true"])


def test_abstaining_with_findings_is_no_answer(make, tree):
    with pytest.raises(ValidationError, match="if and only if the verdict is faulty"):
        Diagnosis(verdict="abstain", findings=(make.finding(),))
    # Which the harness reports as invalid: it stays in every denominator.
    scores = score([make.label(make.fault())], {"case0": make.fails("invalid")}, tree)
    assert list(scores.faults["bucket"]) == ["failed"]
    assert scores.metrics["failed_rate"].value == 1
    assert scores.metrics["recall_cause"].value == 0


def test_two_faults_that_mask_each_other(make, judged):
    masked = {"redundancy_group": "either"}
    case = make.label(make.fault("slow_link", **masked), make.fault("power_cap", **masked))
    buckets, statuses, values = judged(case, make.finding("power_cap", make.at(0), 0.8))
    assert (buckets, statuses) == (["found"] * 2, ["true"])
    assert values["recall_cause_and_locus"] == values["recall_domain"] == 1
    assert values["net_benefit_w1"] == values["ac_at_3"] == 1
    assert values["brier"] == pytest.approx(2 * 0.04)
    wrong = judged(case, make.finding("slow_loader", None, 0.8))
    assert wrong[0] == ["misattributed", "missed"]


def test_ties_in_confidence_are_taken_by_expectation(make, judged):
    case = make.label(make.fault("slow_link"))
    answers = [make.finding("slow_link", make.at(0))]
    answers += [make.finding(cause) for cause in ("power_cap", "slow_loader", "cpu_contention")]
    values = judged(case, *answers)[2]
    assert values["top1"] == 1 / 4
    assert values["top1_wrong"] == 3 / 4
    assert values["ac_at_3"] == pytest.approx(3 / 4)
    assert values["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert judged(case, *answers[::-1])[2] == values


def test_every_cause_listed(make, judged, tree):
    case = make.label(make.fault("slow_link", JOB), make.fault("power_cap", make.at(1)))
    five = ("slow_link", "power_cap", "lossy_link", "slow_loader", "cpu_contention")
    buckets, statuses, values = judged(case, *(make.finding(cause, JOB) for cause in five))
    # The whole job is the place of the one and not of the other; the rest explains nothing.
    assert buckets == ["found", "mislocated"]
    assert statuses == ["true", "false", "false", "false", "false"]
    assert values["net_benefit_w1"] == 0.5 - 1
    with pytest.raises(ValidationError, match="1 to 5 findings must be roots, got 8"):
        make.says(*(make.finding(cause) for cause in tree.causes))
