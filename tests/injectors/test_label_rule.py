"""The label rule against numbers worked out by hand."""

import math

import pytest

from cases.truth import PairedTrials
from injectors.label_rule import decide, lost_fraction, recompute, shows, validation


def trials(ratios, base=0.01):
    return PairedTrials(
        baseline_s=tuple(base for _ in ratios),
        treated_s=tuple(base * ratio for ratio in ratios),
        treated_first=tuple(i % 2 == 0 for i in range(len(ratios))),
        steps_per_trial=10,
    )


# ln ratios 0.1, 0.2, 0.1, 0.2: mean 0.15, standard deviation 0.1/sqrt(3) = 0.057735, standard
# error 0.0288675; t(0.99, 3) = 4.540703, t(0.95, 3) = 2.353363.
FOUR = trials([math.exp(x) for x in (0.1, 0.2, 0.1, 0.2)])


def test_bounds_by_hand():
    decision = decide(FOUR)
    assert decision.ratio == pytest.approx(math.exp(0.15))
    assert decision.low_99 == pytest.approx(math.exp(0.15 - 4.540703 * 0.0288675), rel=1e-6)
    assert decision.high_95 == pytest.approx(math.exp(0.15 + 2.353363 * 0.0288675), rel=1e-6)
    assert decision.verdict == "grey"  # exp(0.0189) = 1.019 is not above 1.05


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.5, 1.6, 1.5, 1.6, 1.5, 1.6, 1.5, 1.6], "faulty"),
        ([1.0, 1.01, 0.99, 1.0, 1.01, 1.0, 0.99, 1.0], "healthy"),
        ([1.04, 1.04, 1.041, 1.04, 1.04, 1.04, 1.041, 1.04], "grey"),  # real, but too small
        ([0.6, 2.9, 0.9, 2.2, 0.8, 2.5, 0.7, 2.4], "grey"),  # large, but not shown
        ([0.5, 0.51, 0.5, 0.49, 0.5, 0.5, 0.5, 0.5], "healthy"),  # faster is not slower
    ],
)
def test_verdicts(ratios, verdict):
    assert decide(trials(ratios)).verdict == verdict


def test_bursty_effect_counts_by_its_mean():
    # Every trial's value is a mean: one step of ten at 6x gives 1.5 although the median is 1.
    assert decide(trials([1.5, 1.48, 1.52, 1.5])).verdict == "faulty"


def test_lost_fraction_by_hand():
    interval = lost_fraction(FOUR)
    assert interval.value == pytest.approx(1 - math.exp(-0.15))
    half = 3.182446 * 0.0288675  # t(0.975, 3)
    assert interval.low == pytest.approx(1 - math.exp(-0.15 + half), rel=1e-6)
    assert interval.high == pytest.approx(1 - math.exp(-0.15 - half), rel=1e-6)


def test_too_few_pairs_are_refused():
    with pytest.raises(ValueError, match="at least 4 pairs, got 3"):
        decide(trials([1.5, 1.5, 1.6]))


def test_validation_is_recomputed_from_its_samples():
    slow = trials([1.5, 1.6, 1.5, 1.6])
    recorded = validation(slow, slow, shipped_ratio=1.5)
    assert recompute(recorded) == []


def test_recomputing_finds_altered_samples():
    slow = trials([1.5, 1.6, 1.5, 1.6])
    recorded = validation(slow, slow, shipped_ratio=1.5)
    flat = recorded.model_copy(update={"acceptance": trials([1.0, 1.01, 1.0, 1.0])})
    assert any("samples say healthy" in problem for problem in recompute(flat))
    hidden = recorded.model_copy(update={"shipped_ratio": 1.0})
    assert any("does not show it" in problem for problem in recompute(hidden))
    unpriced = recorded.model_copy(update={"fresh": None})
    assert any("fresh pairs" in problem for problem in recompute(unpriced))
    moved = recorded.model_copy(update={"threshold": 1.01})
    assert any("threshold must be 1.05" in problem for problem in recompute(moved))


def test_grey_is_no_validation():
    decision = validation(FOUR, FOUR, shipped_ratio=1.2)
    assert "grey: ratio 1.162" in str(decision)


def test_shipped_recording_must_show_the_verdict():
    assert shows("faulty", 1.06)
    assert not shows("faulty", 1.04)
    assert shows("healthy", 1.04)
    assert not shows("healthy", 1.06)
    assert shows("healthy", 0.96)
    assert not shows("healthy", 0.94)
