import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.errors import HarnessError, InputError
from cases.schema import JOB
from cases.taxonomy import Taxonomy
from scorers import Label, score, validate
from scorers.buckets import CASE_BUCKETS
from scorers.settling import FAULT_BUCKETS

CAUSES = ("slow_link", "lossy_link", "gpu_throttle", "slow_loader")


@pytest.fixture(scope="session")
def suite(make):
    """Forty cases in ten groups: 20 faulty (every fourth with two faults), 12 healthy, 8 not."""
    labels = []
    for i in range(40):
        where = {"case_id": f"case{i:02d}", "group": f"g{i % 10}"}
        if i < 20:
            faults = [make.fault(CAUSES[i % 4], make.at(i % 3), 0.1)]
            faults += [make.fault("cpu_contention", JOB, 0.3)] if i % 4 == 0 else []
            labels.append(make.label(*faults, **where))
        else:
            labels.append(make.label(**where) if i < 32 else make.undecidable(**where))
    return labels


@pytest.fixture(scope="session")
def answer_all(make):
    def answer(labels, findings_of):
        return {x.case_id: make.says(*findings_of(x), case_id=x.case_id) for x in labels}

    return answer


@pytest.fixture(scope="session")
def perfect(make, suite, answer_all):
    def known(label):
        return [
            make.finding(f.cause, f.locus, 1.0, lost_fraction=f.lost_fraction.value)
            for f in label.faults
        ]

    responses = answer_all(suite, known)
    for label in suite:
        if label.verdict == "undecidable":
            responses[label.case_id] = make.abstains(label.case_id, missing_signals=("network",))
    return responses


def value(scores, name):
    return scores.metrics[name].value


def test_the_perfect_diagnoser(suite, perfect, tree):
    scores = score(suite, perfect, tree)
    for level in ("domain", "mechanism", "cause", "cause_and_locus"):
        for metric in ("recall", "precision", "f1"):
            assert value(scores, f"{metric}_{level}") == 1
        assert value(scores, f"precision_{level}_reference") == 1
    for name in ("top1", "ac_at_3", "mrr", "abstained_informed_rate"):
        assert value(scores, name) == 1
    assert value(scores, "misled_rate") == value(scores, "lost_fraction_error") == 0
    for weight in ("0.5", "1", "2", "5"):
        assert value(scores, f"net_benefit_w{weight}") == 0.5
        assert value(scores, f"net_benefit_w{weight}_reference") == pytest.approx(0.2)
    assert set(scores.confusion["kind"]) == {"found"}


def test_silence_is_worth_exactly_nothing(make, suite, answer_all, tree):
    silent = score(suite, answer_all(suite, lambda _: ()), tree)
    abstaining = score(suite, {x.case_id: make.abstains(x.case_id) for x in suite}, tree)
    for scores in (silent, abstaining):
        for weight in ("0.5", "1", "2", "5"):
            for suffix in ("", "_reference"):
                metric = scores.metrics[f"net_benefit_w{weight}{suffix}"]
                assert metric.value == 0
                # What was never seen in ten groups may still happen.
                assert metric.low < 0 < metric.high
        assert value(scores, "misled_rate") == 0
        assert value(scores, "recall_cause") == 0
        assert value(scores, "f1_cause") == 0
        assert scores.metrics["precision_cause"].value is None
        assert scores.metrics["precision_cause"].note == "no finding was made"
        assert scores.metrics["precision_cause_reference"].value is None


def test_naming_everything_is_worth_less_than_silence(make, suite, answer_all, tree):
    everything = [make.finding(cause, JOB, 0.9) for cause in (*CAUSES, "cpu_contention")]
    scores = score(suite, answer_all(suite, lambda _: everything), tree)
    assert value(scores, "misled_rate") == 1
    for weight in ("0.5", "1", "2", "5"):
        assert value(scores, f"net_benefit_w{weight}") < 0
        assert value(scores, f"net_benefit_w{weight}_reference") < 0


def test_lost_fraction_of_misses_is_predicted_as_zero(suite, answer_all, tree):
    scores = score(suite, answer_all(suite, lambda _: ()), tree, train_median_lost_fraction=0.1)
    # 20 faults lost 0.1 and 5 lost 0.3.
    assert value(scores, "lost_fraction_error") == pytest.approx((20 * 0.1 + 5 * 0.3) / 25)
    assert value(scores, "lost_fraction_error_floor") == pytest.approx(5 * 0.2 / 25)


def test_one_finding_for_two_faults_shares_its_lost_fraction(make, tree):
    label = make.label(
        make.fault(where=make.at(0), lost=0.2), make.fault(where=make.at(1), lost=0.1), ranks=2
    )
    answer = make.says(make.finding(where=make.at(0, 1), lost_fraction=0.4))
    faults = score([label], {"case0": answer}, tree).faults
    assert list(faults["predicted_lost_fraction"]) == [0.2, 0.2]


def test_misattributed_time_is_that_of_faults_for_which_another_cause_is_blamed(make, tree):
    faults = make.fault("slow_link", lost=0.3), make.fault("gpu_throttle", lost=0.1)
    answer = make.says(make.finding("lossy_link", make.at(0)))
    scores = score([make.label(*faults)], {"case0": answer}, tree)
    assert list(scores.faults["bucket"]) == ["misattributed", "missed"]
    assert value(scores, "misattributed_time") == pytest.approx(0.75)


def test_a_surplus_answer_adds_nothing_to_the_predicted_time(make, tree):
    label = make.label(make.fault("slow_link", acceptable=("lossy_link",)))
    answers = [
        make.finding(cause, make.at(0), confidence, lost_fraction=0.2)
        for cause, confidence in (("slow_link", 0.9), ("lossy_link", 0.1))
    ]
    faults = score([label], {"case0": make.says(*answers)}, tree).faults
    assert list(faults["predicted_lost_fraction"]) == [0.2]


def test_symptoms_are_no_answers(make, tree):
    label = make.label(make.fault("slow_link"))
    symptom = {"role": "symptom", "caused_by": "slow_link"}
    root = make.finding("slow_link", make.at(0))
    false_symptom = make.finding("cpu_contention", **symptom)
    scores = score([label], {"case0": make.says(root, false_symptom)}, tree)
    assert value(scores, "precision_domain") == 0.5  # although the domain is the fault's
    wrong_root = make.finding("gpu_throttle", make.at(0))
    as_symptom = make.finding("slow_link", make.at(0), role="symptom", caused_by="gpu_throttle")
    scores = score([label], {"case0": make.says(wrong_root, as_symptom)}, tree)
    assert value(scores, "recall_domain") == 0


def test_the_scarcest_kind_of_case_decides_about_intervals(make, answer_all, tree):
    faulty = [make.label(make.fault(), case_id=f"bad{i}", group=f"g{i}") for i in range(10)]
    others = [
        build(case_id=f"{name}{i}", group=f"g{i}")
        for i in range(5)
        for name, build in (("good", make.label), ("dark", make.undecidable))
    ]
    labels = faulty + others
    scores = score(labels, answer_all(labels, lambda _: ()), tree)
    assert scores.metrics["net_benefit_w1"].low is not None
    metric = scores.metrics["net_benefit_w1_reference"]
    assert (metric.groups, metric.n, metric.low) == (5, 20, None)
    assert metric.note == "no interval: 5 groups, at least 6 are needed"


def test_intervals_stay_within_the_range_of_their_metric(make, tree):
    labels = [make.label(make.fault(), case_id=f"bad{i}", group=f"g{i}") for i in range(8)]
    responses = {
        x.case_id: make.says(*[make.finding("slow_link", make.at(0))] * (i > 0), case_id=x.case_id)
        for i, x in enumerate(labels)
    }
    brier = score(labels, responses, tree).metrics["brier"]
    # Seven of 0.25, one of 1: 0.34375; t with 2 * S2^2 / S4 - 1 = 1.60 degrees goes below 0.
    assert (brier.value, brier.low) == (pytest.approx(0.34375), 0)


def test_candidates_must_be_known_causes(make, tree):
    answer = make.abstains(candidates=("gremlins",))
    assert validate(answer.diagnosis, tree) == (
        "cause must be a name of the taxonomy, found 'gremlins'"
    )
    assert score([make.label()], {"case0": answer}, tree).cases["outcome"].item() == "invalid"


def test_levels_of_misplaced_coarse_and_wrong_findings(make, tree):
    label = make.label(make.fault("slow_link", make.at(0)))

    def levels(finding):
        scores = score([label], {"case0": make.says(finding)}, tree)
        names = ("domain", "mechanism", "cause", "cause_and_locus")
        return [value(scores, f"precision_{name}") for name in names]

    assert levels(make.finding("slow_link", make.at(0))) == [1, 1, 1, 1]
    assert levels(make.finding("slow_link", make.at(3))) == [1, 1, 1, 0]
    assert levels(make.finding("slow_link")) == [1, 1, 1, None]
    assert levels(make.finding("lossy_link", make.at(0))) == [1, 1, 0, 0]
    assert levels(make.finding("network_path", make.at(0))) == [1, 1, None, None]
    assert levels(make.finding("network_path", make.at(3))) == [1, 1, None, 0]
    assert levels(make.finding("host_cpu", make.at(0))) == [1, 0, 0, 0]
    assert levels(make.finding("host_network", make.at(0))) == [1, None, None, None]
    assert levels(make.finding("gpu_hardware", make.at(0))) == [0, 0, 0, 0]


def test_failures_stay_in_denominators_and_unsupported_is_apart(make, suite, perfect, tree):
    broken = dict(perfect)
    broken["case00"], broken["case01"] = (
        make.fails("timeout", "case00"),
        make.fails("error", "case01"),
    )
    for case_id in ("case02", "case20"):
        broken[case_id] = make.fails("unsupported", case_id)
    scores = score(suite, broken, tree)
    # 25 faults, of which case00 has two, case01 and case02 one.
    assert value(scores, "recall_cause") == 21 / 25
    assert value(scores, "recall_cause_applicable") == 21 / 24
    assert value(scores, "failed_rate") == 2 / 40
    assert value(scores, "failed_rate_applicable") == 2 / 38
    assert value(scores, "unsupported_rate") == 2 / 40
    assert value(scores, "unsupported_rate_applicable") == 0
    assert scores.metrics["misled_rate"].n == 40
    assert scores.metrics["misled_rate_applicable"].n == 38
    assert value(scores, "coverage") == (40 - 4 - 8) / 40


def test_undefined_metrics_say_why(make, tree):
    scores = score([make.label(make.fault())], {"case0": make.says()}, tree)
    for name, note in [
        ("false_alarm_rate", "no healthy case"),
        ("overclaim_rate", "no undecidable case"),
        ("net_benefit_w1_reference", "no healthy case"),
        ("lost_fraction_error_floor", "no median of a train split was given"),
    ]:
        assert (scores.metrics[name].value, scores.metrics[name].note) == (None, note)
    only_healthy = score([make.label()], {"case0": make.says()}, tree)
    assert only_healthy.metrics["recall_cause"].note == "no faulty case"
    assert only_healthy.metrics["mrr"].note == "no faulty case"
    assert value(only_healthy, "false_alarm_rate") == 0


def test_all_unsupported_leaves_nothing_applicable(make, suite, tree):
    scores = score(suite, {x.case_id: make.fails("unsupported", x.case_id) for x in suite}, tree)
    assert value(scores, "unsupported_rate") == 1
    assert scores.metrics["misled_rate_applicable"].value is None
    assert scores.metrics["net_benefit_w1_applicable"].note == "no case"


def test_summary_is_json_and_counts_every_case_and_fault(suite, perfect, tree):
    summary = score(suite, perfect, tree).summary()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["composition"] == {"faulty": 20, "healthy": 12, "undecidable": 8}
    assert summary["buckets"]["faults"]["found"] == 25
    assert summary["metrics"]["misled_rate"]["groups"] == 10
    assert summary["scoring_version"] == "1.1"


def test_recall_by_cause_pools_the_scarce_by_domain(suite, perfect, tree):
    by_cause = {
        name: metric.n
        for name, metric in score(suite, perfect, tree).metrics.items()
        if name.startswith("recall_of_")
    }
    assert by_cause == {
        "recall_of_slow_link": 5,
        "recall_of_lossy_link": 5,
        "recall_of_gpu_throttle": 5,
        "recall_of_slow_loader": 5,
        "recall_of_cpu_contention": 5,
    }
    few = [label for label in suite if label.case_id < "case12"]
    answers = {label.case_id: perfect[label.case_id] for label in few}
    names = {n for n in score(few, answers, tree).metrics if n.startswith("recall_of_")}
    assert names == {
        "recall_of_other_host_network",
        "recall_of_other_gpu_hardware",
        "recall_of_other_data_checkpoint",
    }


def test_confusion_counts_what_was_blamed(make, tree):
    labels = [
        make.label(make.fault("slow_link"), case_id="case0"),
        make.label(make.fault("slow_link"), case_id="case1"),
        make.label(case_id="case2"),
        make.undecidable(case_id="case3"),
    ]
    responses = {
        "case0": make.says(make.finding("lossy_link", make.at(0)), case_id="case0"),
        "case1": make.says(case_id="case1"),
        "case2": make.says(make.finding("power_cap"), case_id="case2"),
        "case3": make.says(make.finding("slow_link"), case_id="case3"),
    }
    rows = score(labels, responses, tree).confusion.to_numpy().tolist()
    assert rows == [
        ["healthy", "power_cap", "other", 1],
        ["slow_link", "", "missed", 1],
        ["slow_link", "lossy_link", "same_mechanism", 1],
        ["undecidable", "slow_link", "other", 1],
    ]


def test_no_labels_is_wrong_use(tree):
    with pytest.raises(InputError, match="labels: must hold at least one case, found 0"):
        score([], {}, tree)


def test_labels_and_responses_must_pair_up(make, suite, perfect, tree):
    missing = {k: v for k, v in perfect.items() if k != "case07"}
    with pytest.raises(HarnessError, match=r"must have a response, none for \['case07'\]"):
        score(suite, missing, tree)
    with pytest.raises(HarnessError, match="must have a label"):
        score(suite[1:], perfect, tree)
    with pytest.raises(HarnessError, match=r"found twice \['case00'\]"):
        score([*suite, suite[0]], perfect, tree)


def test_a_label_or_response_that_contradicts_itself_is_refused(make):
    with pytest.raises(HarnessError, match="must have faults"):
        make.label(verdict="faulty")
    with pytest.raises(HarnessError, match="outcome ok"):
        make.fails("ok")
    assert Label.__dataclass_params__.frozen


responses = st.sampled_from(
    ["found", "wrong", "coarse", "healthy", "abstain", "error", "unsupported"]
)


@settings(max_examples=15, deadline=None)
@given(kinds=st.lists(responses, min_size=40, max_size=40))
def test_partition_whatever_is_answered(make, suite, perfect, tree, kinds):
    answers = {}
    for label, kind in zip(suite, kinds, strict=True):
        case = label.case_id
        answers[case] = {
            "found": perfect[case],
            "wrong": make.says(make.finding("power_cap", make.at(3)), case_id=case),
            "coarse": make.says(make.finding("host_network", JOB), case_id=case),
            "healthy": make.says(case_id=case),
            "abstain": make.abstains(case),
            "error": make.fails("error", case),
            "unsupported": make.fails("unsupported", case),
        }[kind]
    scores = score(suite, answers, tree)
    buckets = scores.buckets()
    assert list(buckets["faults"]) == list(FAULT_BUCKETS)
    assert sum(buckets["faults"].values()) == 25
    for verdict, count in [("faulty", 20), ("healthy", 12), ("undecidable", 8)]:
        assert list(buckets[verdict]) == list(CASE_BUCKETS[verdict])
        assert sum(buckets[verdict].values()) == count
    recalls = [
        value(scores, f"recall_{x}") for x in ("domain", "mechanism", "cause", "cause_and_locus")
    ]
    assert recalls == sorted(recalls, reverse=True)
    for metric in scores.metrics.values():
        assert (metric.value is None) <= (metric.note is not None)
        if metric.low is not None:
            assert metric.low - 1e-9 <= metric.value <= metric.high + 1e-9


def test_order_and_seed_change_nothing_but_the_bootstrap(suite, perfect, tree):
    one = score(suite, perfect, tree).summary()
    assert score(suite[::-1], dict(reversed(perfect.items())), tree).summary() == one


def test_the_shipped_taxonomy_fits(make):
    taxonomy = Taxonomy.load()
    labels = [make.label(make.fault(cause), case_id=cause) for cause in taxonomy.causes]
    answers = {
        cause: make.says(make.finding(cause, make.at(0)), case_id=cause)
        for cause in taxonomy.causes
    }
    faults = score(labels, answers, taxonomy).faults
    assert set(faults["bucket"]) == {"found"}
    assert list(faults["domain"]) == [taxonomy.domain(cause) for cause in faults["cause"]]
    assert list(faults["mechanism"]) == [taxonomy.mechanism(cause) for cause in faults["cause"]]
