"""Tricks to look good, and what the page says each is worth."""

import re
from pathlib import Path

import pytest

from cases.schema import JOB, Evidence
from scorers import score
from scorers.evidence import is_supported

DOCUMENT = Path(__file__).parents[2] / "docs" / "scoring.md"
COLUMNS = (
    "misled_rate",
    "recall_cause_and_locus",
    "precision_cause_and_locus",
    "net_benefit_w1_reference",
    "brier",
    "evidence_support",
)
ROW = re.compile(r"^\| (\w[\w ,.]*) \|" + r" (-?\d\.\d{4}|-) \|" * len(COLUMNS), re.MULTILINE)
# The commonest cause has two fifths of the faults.
CAUSES = ("slow_link", "slow_link", "cpu_contention", "power_cap", "slow_loader")


@pytest.fixture(scope="module")
def suite(make):
    """Thirty groups of a faulty, a healthy and an undecidable case; faults act everywhere."""
    labels = []
    for i in range(30):
        name = f"{i:02d}"
        fault = make.fault(CAUSES[i % 5], JOB)
        labels.append(make.label(fault, case_id=f"bad{name}", group=name))
        labels.append(make.label(case_id=f"good{name}", group=name))
        labels.append(make.undecidable(f"dark{name}", name))
    return labels


@pytest.fixture(scope="module")
def scored(make, suite, tree):
    def of(answer):
        return score(suite, {x.case_id: answer(x) for x in suite}, tree)

    return of


@pytest.fixture(scope="module")
def tricks(make, scored):
    """Scores of each trick by the name it has on the page."""
    listed = [make.finding(c, JOB, 0.9) for c in dict.fromkeys((*CAUSES, "lossy_link"))]
    constant = Evidence(sql="SELECT 1", value=1.0, says="it is so")

    def right(label, confidence, **more):
        if label.verdict == "undecidable":
            return make.abstains(label.case_id, missing_signals=("network",))
        found = [make.finding(f.cause, f.locus, confidence, **more) for f in label.faults]
        # The query gives 1 on the case and on its healthy twin.
        supported = tuple(is_supported(e, 1.0, 1.0) for f in found for e in f.evidence) or None
        return make.says(*found, case_id=label.case_id, supported=supported)

    def commonest(label, confidence):
        return make.says(make.finding("slow_link", JOB, confidence), case_id=label.case_id)

    return {
        "names five causes at once": scored(lambda x: make.says(*listed, case_id=x.case_id)),
        "always abstains": scored(lambda x: make.abstains(x.case_id)),
        "commonest label, sure of it": scored(lambda x: commonest(x, 0.9)),
        "commonest label, honest": scored(lambda x: commonest(x, 12 / 90)),
        "right with confidence 0.01": scored(lambda x: right(x, 0.01)),
        "right, cites constants": scored(lambda x: right(x, 1.0, evidence=(constant,))),
    }


def test_each_trick_is_worth_what_the_page_says(tricks):
    written = {name: values for name, *values in ROW.findall(DOCUMENT.read_text())}
    computed = {
        name: [
            "-" if scores.metrics[column].value is None else f"{scores.metrics[column].value:.4f}"
            for column in COLUMNS
        ]
        for name, scores in tricks.items()
    }
    assert written == computed


def test_naming_five_causes_has_all_recall_and_is_worth_less_than_silence(tricks):
    metrics = tricks["names five causes at once"].metrics
    assert metrics["recall_cause_and_locus"].value == 1
    assert metrics["precision_cause_and_locus"].value == pytest.approx(30 / 450)
    assert metrics["top1"].value == pytest.approx(1 / 5)
    for weight in ("0.5", "1", "2", "5"):
        assert metrics[f"net_benefit_w{weight}_reference"].high < 0


def test_naming_all_of_them_is_no_answer(make, suite, tree):
    answers = {x.case_id: make.fails("invalid", x.case_id) for x in suite}
    metrics = score(suite, answers, tree).metrics
    assert (metrics["failed_rate"].value, metrics["recall_cause"].value) == (1, 0)


def test_abstaining_is_worth_nothing_and_seen_in_coverage(tricks):
    metrics = tricks["always abstains"].metrics
    assert metrics["net_benefit_w1_reference"].value == metrics["misled_rate"].value == 0
    assert (metrics["coverage"].value, metrics["abstention_rate"].value) == (0, 1)
    assert metrics["abstained_informed_rate"].value == 0  # it never says why
    assert metrics["brier"].value == pytest.approx(1 / 3)


def test_the_commonest_label_pays_unless_it_owns_up(tricks):
    sure, honest = (tricks[f"commonest label, {how}"].metrics for how in ("sure of it", "honest"))
    for metrics in (sure, honest):
        assert metrics["recall_cause_and_locus"].value == 0.4
        assert metrics["precision_cause_and_locus"].value == pytest.approx(12 / 90)
    assert sure["net_benefit_w1_reference"].value == pytest.approx(0.2 * (0.4 - 0.6) - 0.8)
    assert honest["net_benefit_w1_reference"].value == 0
    # The one is 0.77 too sure of itself, the other not at all.
    assert sure["ece"].value == pytest.approx(0.9 - 12 / 90)
    assert honest["ece"].value == pytest.approx(0)
    assert honest["ece_by_chance"].value > 0


def test_hiding_behind_a_low_confidence_gains_nothing(tricks):
    metrics = tricks["right with confidence 0.01"].metrics
    assert metrics["top1"].value == metrics["precision_cause"].value == 1
    for weight in ("0.5", "1", "2", "5"):
        assert metrics[f"net_benefit_w{weight}"].value == 0
    assert metrics["ece"].value == pytest.approx(0.99)
    assert metrics["brier"].value == pytest.approx(0.99**2 / 3)


def test_constants_support_nothing(tricks):
    metrics = tricks["right, cites constants"].metrics
    assert (metrics["evidence_support"].value, metrics["evidence_support"].n) == (0, 30)
    assert metrics["net_benefit_w1_reference"].value == pytest.approx(0.2)


def test_symptoms_without_end_are_false_findings(make, scored, tree):
    spare = sorted(set(tree.causes) - {"slow_link"})

    def hedged(label):
        root = make.finding("slow_link", JOB, 0.9)
        symptoms = [
            make.finding(cause, confidence=0.9, role="symptom", caused_by="slow_link")
            for cause in spare
        ]
        return make.says(root, *symptoms, case_id=label.case_id)

    metrics = scored(hedged).metrics
    assert metrics["misled_rate"].value == 1
    # They are no answers either: other causes than the root are not found.
    assert metrics["recall_cause_and_locus"].value == 0.4
