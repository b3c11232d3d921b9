import numpy as np
import pandas as pd
import pytest

from scorers import score
from scorers.detectable import minimum_detectable, severities

LEVELS = (0.05, 0.1, 0.2, 0.4)


def faults(found_at, levels=LEVELS, each=3, groups=None):
    """`each` faults at every level, of which the first `found_at[level]` are found."""
    costs = [cost for cost in levels for _ in range(each)]
    right = [i < found for found in found_at for i in range(each)]
    groups = range(len(costs)) if groups is None else groups
    return pd.DataFrame(
        {
            "group": pd.Categorical(list(groups)),
            "lost_fraction": costs,
            "right_cause_and_locus": right,
        }
    )


def test_a_symmetric_sweep_has_its_half_in_the_middle():
    # 0, 1, 2, 3 of 3 at 0.05 to 0.4, each twice the one before: at the root of 0.1 * 0.2.
    metric = minimum_detectable(faults((0, 1, 2, 3)))
    assert metric.value == pytest.approx((0.1 * 0.2) ** 0.5)
    assert (metric.n, metric.groups) == (12, 12)
    assert 0 < metric.low < metric.value < metric.high <= 1


def test_what_separates_is_found_between_the_two():
    metric = minimum_detectable(faults((0, 0, 3, 3)))
    assert metric.value == pytest.approx((0.1 * 0.2) ** 0.5)


def test_better_diagnosers_detect_less():
    poor, fair = faults((0, 0, 1, 3)), faults((0, 1, 3, 3))
    assert minimum_detectable(fair).value < minimum_detectable(poor).value


@pytest.mark.parametrize(
    "frame",
    [
        faults((0, 1, 2), levels=LEVELS[:3], each=5),  # three severities
        faults((0, 0, 1, 1), each=2),  # eight faults
        faults((0, 1, 2, 3), groups=[0, 1, 2, 3, 4] * 2 + [0, 1]),  # five groups
        faults((0, 1, 2, 3), levels=(0.1, 0.11, 0.12, 0.124)),  # one severity, all told
        faults((), levels=()),
    ],
)
def test_too_little_to_tell(frame):
    metric = minimum_detectable(frame)
    assert metric.value is None
    assert metric.note == "at least 12 faults, 4 severities and 6 groups are needed"


def test_undefined_where_recall_does_not_grow():
    assert minimum_detectable(faults((3, 2, 1, 0))).note == "recall does not grow with cost"


@pytest.mark.parametrize(("found", "side"), [((0, 0, 0, 1), "below"), ((2, 3, 3, 3), "above")])
def test_undefined_beyond_the_costs_that_were_seen(found, side):
    metric = minimum_detectable(faults(found))
    assert metric.value is None
    assert metric.note == f"recall is {side} one half at all costs seen (0.05 to 0.4)"


def test_a_fault_without_cost_is_left_out():
    frame = faults((0, 1, 2, 3))
    more = pd.concat([frame, frame.iloc[:1].assign(lost_fraction=0.0)], ignore_index=True)
    more["group"] = pd.Categorical(more["group"])
    assert minimum_detectable(more).n == 12


def test_severities_by_hand():
    # 0.1 counts; 0.12 is not a quarter more; 0.125 is; 0.15 is not; 0.157 is.
    assert severities(np.array([0.157, 0.1, 0.12, 0.125, 0.15])) == 3
    assert severities(np.array([])) == 0


def test_each_cause_with_faults_enough_has_its_own(make, tree):
    labels, answers = [], {}
    for i in range(24):
        case, cause = f"case{i:02d}", ("slow_link", "power_cap")[i % 2]
        cost = LEVELS[i // 2 % 4] if cause == "slow_link" else 0.2
        labels.append(make.label(make.fault(cause, lost=cost), case_id=case, group=case))
        said = [make.finding(cause, make.at(0))] if cost > 0.1 else []
        answers[case] = make.says(*said, case_id=case)
    metrics = score(labels, answers, tree).metrics
    own = {name for name in metrics if name.startswith("minimum_detectable_of")}
    assert own == {"minimum_detectable_of_slow_link"}
    assert 0.1 < metrics["minimum_detectable_of_slow_link"].value < 0.2
