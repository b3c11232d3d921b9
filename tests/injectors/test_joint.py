"""Two faults at once, against numbers worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.schema import JOB, Fault
from cases.truth import Alone, PairedTrials
from injectors.joint import costs, joint_problems, joint_witness, parts, relation, unproven
from injectors.label_rule import validation

WOBBLE = (0.99, 1.0, 1.01, 1.0, 0.99, 1.01, 1.0, 1.0)


def seconds(ratio):
    return tuple(0.01 * ratio * wobble for wobble in WOBBLE)


def pairs(ratio):
    first = tuple(i % 2 == 0 for i in range(len(WOBBLE)))
    base = tuple(0.01 for _ in WOBBLE)
    return PairedTrials(
        baseline_s=base, treated_s=seconds(ratio), treated_first=first, steps_per_trial=8
    )


def recorded(first, second, both):
    """A label whose faults take `first`, `second` and `both` times as long as the healthy job."""
    alone = tuple(
        Alone(cause=cause, acceptance_s=seconds(ratio), fresh_s=seconds(ratio))
        for cause, ratio in (("slow_link", first), ("storage_fetch_stall", second))
    )
    return validation(pairs(both), pairs(both), both, alone)


@pytest.mark.parametrize(
    ("first", "second", "both", "expected"),
    [
        (1.5, 1.4, 1.9, "separate"),  # each adds at least 1.27 times the other
        (1.0, 1.0, 1.5, "separate"),  # neither costs by itself, each does beside the other
        (1.5, 1.5, 1.5, "redundant"),  # either is enough
        (1.5, 1.2, 1.5, "unproven"),  # the second is hidden by the first
        (1.0, 1.5, 1.5, "unproven"),  # the first costs nothing at all
    ],
)
def test_relations(first, second, both, expected):
    label = recorded(first, second, both)
    assert relation(label) == expected
    assert (unproven(label) is None) == (expected != "unproven")


def test_parts_by_hand():
    first, second = parts(recorded(1.5, 1.4, 1.9))
    assert (first.cause, second.cause) == ("slow_link", "storage_fetch_stall")
    assert first.added.ratio == pytest.approx(1.9 / 1.4)
    assert second.added.ratio == pytest.approx(1.9 / 1.5)
    assert first.alone.ratio == pytest.approx(1.5, rel=1e-3)


def test_costs_by_hand():
    # T0 = 1, T1 = 1.5, T2 = 1.4, T12 = 1.9, each times the mean wobble w, but for T0.
    # Shapley: ((T1 - T0) + (T12 - T2)) / 2 = (0.5 + 0.5) / 2 and (0.4 + 0.4) / 2, over T12.
    w = math.exp(sum(math.log(x) for x in WOBBLE) / len(WOBBLE))
    first, second = costs(recorded(1.5, 1.4, 1.9))
    assert first.value == pytest.approx(((1.5 * w - 1) + (1.9 - 1.4) * w) / 2 / (1.9 * w))
    assert second.value == pytest.approx(((1.4 * w - 1) + (1.9 - 1.5) * w) / 2 / (1.9 * w))
    assert first.low < first.value < first.high


@given(*[st.floats(0.8, 4)] * 3)
def test_shares_add_up_to_the_joint_cost(first, second, both):
    label = recorded(1.5, 1.4, 1.9).model_copy(
        update={
            "fresh": pairs(both),
            "alone": tuple(
                Alone(cause=cause, acceptance_s=seconds(1), fresh_s=seconds(ratio))
                for cause, ratio in (("a", first), ("b", second))
            ),
        }
    )
    d = [math.log(x / 0.01) for x in seconds(both)]
    joint = 1 - math.exp(-sum(d) / len(d))
    assert sum(share.value for share in costs(label)) == pytest.approx(joint, abs=1e-9)


def test_interval_covers_as_often_as_it_says():
    import numpy as np

    rng, true, hits = np.random.default_rng(0), (0.5 + 0.5) / 2 / 1.9, 0
    for _ in range(300):
        noise = rng.normal(0, 0.05, (4, len(WOBBLE)))
        base, first, second, both = (
            tuple(0.01 * ratio * np.exp(row))
            for ratio, row in zip((1, 1.5, 1.4, 1.9), noise, strict=True)
        )
        joint = PairedTrials(
            baseline_s=base, treated_s=both, treated_first=(True,) * 8, steps_per_trial=8
        )
        alone = tuple(
            Alone(cause=cause, acceptance_s=own, fresh_s=own)
            for cause, own in (("a", first), ("b", second))
        )
        label = validation(joint, joint, 1.9, alone)
        share = costs(label)[0]
        hits += share.low <= true <= share.high
    assert 0.91 < hits / 300 < 0.985


def faults(label, group=None):
    return [
        Fault(cause=part.cause, locus=JOB, lost_fraction=share, redundancy_group=group)
        for part, share in zip(label.alone, costs(label), strict=True)
    ]


def test_labels_are_decided_and_costed_again():
    separate, redundant = recorded(1.5, 1.4, 1.9), recorded(1.5, 1.5, 1.5)
    assert list(joint_problems(separate, faults(separate))) == []
    assert list(joint_problems(redundant, faults(redundant, "ab"))) == []


@pytest.mark.parametrize(
    ("label", "group", "says"),
    [
        (recorded(1.5, 1.2, 1.5), None, "neither separate nor redundant"),
        (recorded(1.5, 1.4, 1.9), "ab", "the samples say separate"),
        (recorded(1.5, 1.5, 1.5), None, "the samples say redundant"),
    ],
)
def test_wrong_labels_are_seen(label, group, says):
    assert any(says in problem for problem in joint_problems(label, faults(label, group)))


def test_wrong_cost_and_causes_are_seen():
    label = recorded(1.5, 1.4, 1.9)
    first, second = faults(label)
    cheap = first.model_copy(update={"lost_fraction": second.lost_fraction})
    assert any("fresh samples" in problem for problem in joint_problems(label, [cheap, second]))
    assert any("must be those" in problem for problem in joint_problems(label, [second, first]))
    bare = label.model_copy(update={"alone": ()})
    assert any("must be those" in problem for problem in joint_problems(bare, [first, second]))


def test_trials_alone_must_be_as_many_as_the_pairs():
    short = Alone(cause="slow_link", acceptance_s=seconds(1)[:4], fresh_s=seconds(1))
    with pytest.raises(ValueError, match="slow_link alone must be as many"):
        validation(pairs(1.9), pairs(1.9), 1.9, (short,))


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (("SELECT true", "WITH x AS (SELECT 2 AS y) SELECT y FROM x"), True),
        (("SELECT true", "SELECT 0"), False),
        (("SELECT NULL", "SELECT 1"), False),
        (("SELECT 1 WHERE false", "SELECT 1"), False),
    ],
)
def test_joint_witness_needs_both(tiny_suite, tiny_ids, queries, expected):
    from cases.bundle import Suite
    from cases.witness import holds

    case = Suite.open(tiny_suite).case(tiny_ids["twin_dev"])
    assert holds(case, joint_witness([(sql, "says") for sql in queries]).sql) is expected
