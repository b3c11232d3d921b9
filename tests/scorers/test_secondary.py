import pytest

from scorers import compare, score
from scorers.secondary import METRICS, family


@pytest.fixture(scope="module")
def suite(make):
    """Forty groups: a slow link, a power cap, a healthy and an undecidable case in each."""
    labels = []
    for i in range(40):
        name = f"{i:02d}"
        labels.append(make.label(make.fault("slow_link"), case_id=f"link{name}", group=name))
        labels.append(make.label(make.fault("power_cap"), case_id=f"power{name}", group=name))
        labels.append(make.label(case_id=f"good{name}", group=name))
        labels.append(make.undecidable(f"dark{name}", name))
    return labels


@pytest.fixture(scope="module")
def scored(make, suite, tree):
    """Scores of an answer that names `links` links, `powers` power caps, `alarms` alarms."""

    def build(links=0, powers=0, alarms=0):
        answers = {}
        for label in suite:
            kind, number = label.case_id[:-2], int(label.case_id[-2:])
            said = []
            if kind == "link" and number < links:
                said = [make.finding("slow_link", make.at(0), 0.9)]
            elif kind == "power" and number < powers:
                said = [make.finding("power_cap", make.at(0), 0.9)]
            elif kind == "good" and number < alarms:
                said = [make.finding("slow_loader", None, 0.9)]
            answers[label.case_id] = make.says(*said, case_id=label.case_id)
        return score(suite, answers, tree)

    return build


def by_name(result):
    return {row.name: row for row in result.secondary}


def test_the_list_is_fixed_by_the_labels(scored):
    domains = {"recall_in_host_network", "recall_in_gpu_hardware"}
    assert set(family(scored().faults)) == set(METRICS) | domains
    for answers in (scored(), scored(links=40, alarms=40)):
        assert set(by_name(compare(answers, scored(), margin=0.1))) == set(METRICS) | domains


def test_each_row_by_hand(scored):
    rows = by_name(compare(scored(links=20, alarms=4), scored(links=10), margin=0.1))
    recall = rows["recall_cause_and_locus"]
    # 20 and 10 of 80 faults.
    assert (recall.first, recall.second, recall.n) == (0.25, 0.125, 80)
    assert recall.difference == 0.125
    assert recall.groups_with_difference == 10
    assert recall.low < 0.125 < recall.high
    # Ten groups differ the same way: 2 / 2^10, times nine tests less those before it.
    assert recall.p_value == 2 / 2**10
    assert recall.verdict == "better"
    assert rows["recall_in_host_network"].difference == 0.25
    assert rows["top1"].difference == 0.125
    # Ten faults gain 1 - 0.01 and four alarms cost 0.81, over 160 cases: less is better.
    assert rows["brier"].difference == pytest.approx((4 * 0.81 - 10 * 0.99) / 160)


def test_p_values_are_adjusted_together(scored):
    rows = compare(scored(links=8), scored(), margin=0.1).secondary
    tested = [row for row in rows if row.p_value is not None]
    # Recall twice, top1, Brier and the domain: all by the same eight groups, 2 / 2^8.
    assert {row.name for row in tested} == {
        "recall_cause",
        "recall_cause_and_locus",
        "top1",
        "brier",
        "recall_in_host_network",
    }
    assert {row.p_value for row in tested} == {2 / 2**8}
    # The least of nine is multiplied by nine, and the others do not fall below it.
    assert [row.p_adjusted for row in tested] == pytest.approx([9 * 2 / 2**8] * 5)
    assert {row.verdict for row in tested} == {"inconclusive"}


def test_fewer_false_alarms_are_better(scored):
    rows = by_name(compare(scored(alarms=2), scored(alarms=14), margin=0.1))
    assert rows["false_alarm_rate"].difference == pytest.approx(-0.3)
    assert rows["false_alarm_rate"].verdict == "better"
    assert rows["misattribution_rate"].verdict == "inconclusive"
    worse = by_name(compare(scored(alarms=14), scored(alarms=2), margin=0.1))
    assert worse["false_alarm_rate"].verdict == "worse"
    assert worse["brier"].verdict == "worse"


@pytest.mark.parametrize("more", [1, 5])
def test_too_few_groups_are_not_tested(scored, more):
    row = by_name(compare(scored(alarms=more), scored(), margin=0.1))["false_alarm_rate"]
    assert (row.p_value, row.p_adjusted, row.verdict) == (None, None, "inconclusive")
    assert row.groups_with_difference == more


def test_what_too_few_groups_differ_in_takes_the_last_place(make, suite, scored, tree):
    # Seven links found that the other misses and one the other way: 2 (1 + 8) / 2^8. Five
    # groups alone would reach 2 / 2^5, but are too few to be anybody's first place.
    answers = {x.case_id: make.says(case_id=x.case_id) for x in suite}
    answers["link07"] = make.says(make.finding(where=make.at(0)), case_id="link07")
    for i in range(5):
        name = f"good{i:02d}"
        answers[name] = make.says(make.finding("slow_loader"), case_id=name)
    rows = by_name(compare(scored(links=7), score(suite, answers, tree), margin=0.1))
    p_value = 2 * (1 + 8) / 2**8
    assert rows["false_alarm_rate"].p_value is None
    assert rows["recall_cause"].p_value == p_value > 2 / 2**5
    # Brier, which counts both, has the first of nine places and recall the second.
    assert rows["brier"].p_value < p_value
    assert rows["recall_cause"].p_adjusted == pytest.approx(8 * p_value)


def test_what_no_case_is_about_is_left_out(make, tree):
    labels = [make.label(case_id=f"good{i}", group=f"g{i}") for i in range(8)]
    silent = score(labels, {x.case_id: make.says(case_id=x.case_id) for x in labels}, tree)
    result = compare(silent, silent, margin=0.1)
    assert [row.name for row in result.secondary] == ["false_alarm_rate", "brier"]
    assert len(result.causes) == 0


def test_causes_are_described_those_first_that_differ_most(scored):
    table = compare(scored(links=20, alarms=4), scored(links=10, powers=3), margin=0.1).causes
    assert table.to_numpy().tolist() == [
        ["slow_link", 40, 40, 20, 10, 0, 0],
        ["slow_loader", 0, 0, 0, 0, 4, 0],
        ["power_cap", 40, 40, 0, 3, 0, 0],
    ]
