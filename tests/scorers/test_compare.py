import pytest

from cases.errors import InputError
from scorers import compare, score


@pytest.fixture(scope="module")
def suite(make):
    """Sixty faulty and sixty healthy cases, one of each in every one of sixty groups."""
    return [
        label
        for i in range(60)
        for label in (
            make.label(make.fault(), case_id=f"bad{i:02d}", group=f"g{i:02d}"),
            make.label(case_id=f"good{i:02d}", group=f"g{i:02d}"),
        )
    ]


@pytest.fixture(scope="module")
def with_right(make, suite, tree):
    """Scores of a diagnoser that finds the fault of the first `count` groups."""

    def build(count, alarms=0):
        answers = {}
        for label in suite:
            number = int(label.case_id[-2:])
            right = label.verdict == "faulty" and number < count
            alarm = label.verdict == "healthy" and number < alarms
            findings = [make.finding("slow_link", make.at(0))] if right or alarm else []
            answers[label.case_id] = make.says(*findings, case_id=label.case_id)
        return score(suite, answers, tree)

    return build


def test_bounds_are_of_90_percent(make, tree):
    labels = [make.label(make.fault(), case_id=f"bad{i}", group=f"g{i}") for i in range(10)]

    def finds(count):
        answers = {
            x.case_id: make.says(
                *[make.finding("slow_link", make.at(0))] * (i < count), case_id=x.case_id
            )
            for i, x in enumerate(labels)
        }
        return score(labels, answers, tree)

    result = compare(finds(7), finds(0), margin=0.1)
    # Seven ones and three zeros: variance 2.1/9, t with 9 degrees of freedom at 95 % 1.833113.
    half = 1.833113 * (2.1 / 9 / 10) ** 0.5
    assert (result.low, result.high) == pytest.approx((0.7 - half, 0.7 + half))
    assert result.p_value == 2 / 2**7


def test_six_differing_groups_are_enough(with_right):
    result = compare(with_right(26), with_right(20), margin=0.01)
    assert (result.p_value, result.verdict) == (2 / 2**6, "better")


def test_better_and_worse(with_right):
    result = compare(with_right(40), with_right(20), margin=0.01)
    # Twenty of sixty faulty cases more, with weight 0.2 of 0.9 as there are no undecidable ones.
    assert result.difference == pytest.approx(2 / 9 * 20 / 60)
    assert result.verdict == "better"
    assert result.groups_with_difference == 20
    assert result.low < result.difference < result.high
    assert result.note == "no undecidable case: the prevalence is that of the others"
    back = compare(with_right(20), with_right(40), margin=0.01)
    assert (back.verdict, back.difference) == ("worse", pytest.approx(-result.difference))


def test_flipped_cases_stand_with_both_answers(with_right):
    flipped = compare(with_right(21), with_right(20), margin=0.01).flipped
    row = flipped.iloc[0]
    assert list(flipped["case_id"]) == ["bad20"]
    assert (row["bucket_a"], row["blamed_a"]) == ("found", "slow_link")
    assert (row["bucket_b"], row["blamed_b"]) == ("missed", "")


@pytest.mark.parametrize("more", [0, 1, 5])
def test_too_few_differing_groups_are_inconclusive(with_right, more):
    result = compare(with_right(20 + more), with_right(20), margin=0.5)
    assert (result.verdict, result.p_value) == ("inconclusive", None)
    assert f"{more} groups differ, at least 6 are needed" in result.note


def test_equivalent_within_the_margin_and_inconclusive_beyond(make, suite, tree):
    def finds(groups):
        answers = {
            label.case_id: make.says(
                *([make.finding("slow_link", make.at(0))] if label.case_id in groups else []),
                case_id=label.case_id,
            )
            for label in suite
        }
        return score(suite, answers, tree)

    one, other = (
        finds({f"bad{i:02d}" for i in range(10)}),
        finds({f"bad{i}" for i in range(10, 20)}),
    )
    lagging = compare(
        finds({f"bad{i}" for i in range(10, 20)}),
        finds({f"bad{i}" for i in range(20, 34)}),
        margin=0.03,
    )
    assert lagging.low < -0.03 < lagging.high < 0.03
    assert lagging.verdict == "inconclusive"
    wide, narrow = compare(one, other, margin=0.2), compare(one, other, margin=0.01)
    assert wide.difference == narrow.difference == pytest.approx(0)
    assert wide.p_value == 1
    assert (wide.verdict, narrow.verdict) == ("equivalent", "inconclusive")


def test_a_false_alarm_weighs_by_prevalence(with_right):
    # Ten faults found are paid for by ten false alarms at 0.7 to 0.2.
    result = compare(with_right(10, alarms=10), with_right(0), margin=0.01)
    assert result.difference == pytest.approx((2 / 9 - 7 / 9) * 10 / 60)
    assert result.verdict == "worse"


def test_wrong_use(make, with_right, tree):
    other = score([make.label()], {"case0": make.says()}, tree)
    with pytest.raises(InputError, match="same labels"):
        compare(with_right(1), other, margin=0.1)
    with pytest.raises(InputError, match="margin: must be positive, found 0"):
        compare(with_right(1), with_right(1), margin=0)


def test_power_stands_beside_what_was_seen(with_right):
    result = compare(with_right(12), with_right(4), margin=0.01)
    # Eight of sixty groups add 2/9 each, the others nothing.
    assert (result.groups, result.groups_with_difference) == (60, 8)
    assert result.groups_needed == pytest.approx(54, abs=2)
    # Mean 8/60 and deviation 0.3428 in units of 2/9: an effect of 0.389. Sixty show 0.367.
    assert result.visible_difference == pytest.approx(2 / 9 * 0.3428 * 0.367, rel=0.01)
    assert result.verdict == "better"


def test_nothing_to_see_needs_no_groups(with_right):
    result = compare(with_right(20), with_right(20), margin=0.01)
    assert (result.groups_needed, result.visible_difference) == (None, pytest.approx(0))
    assert len(result.flipped) == 0


def test_the_gate_asks_for_the_primary_difference_alone(with_right):
    plain = compare(with_right(26), with_right(20), margin=0.01, secondary=False)
    full = compare(with_right(26), with_right(20), margin=0.01)
    assert (plain.secondary, len(plain.causes)) == ([], 0)
    assert (plain.verdict, plain.p_value, plain.low) == (full.verdict, full.p_value, full.low)
