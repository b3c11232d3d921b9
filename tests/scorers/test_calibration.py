from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from scorers.calibration import calibration
from scorers.reliability import ece, ece_by_chance, expected_deviation, reliability


def table(confidences, right, groups=None):
    groups = range(len(confidences)) if groups is None else groups
    return pd.DataFrame(
        {
            "group": pd.Categorical(list(groups)),
            "confidence": confidences,
            "right_cause_and_locus": pd.Series(right, dtype=object),
        }
    )


def by_name(frame):
    return {metric.name: metric for metric in calibration(frame)}


def test_reliability_by_hand():
    confidences = np.array([0.0, 0.05, 0.5, 0.5, 0.59, 1.0])
    rows = reliability(confidences, np.array([0.0, 1, 1, 0, 1, 1]))
    assert rows[["low", "high", "n", "confidence", "right"]].to_numpy().tolist() == [
        [0.0, 0.1, 2, 0.025, 0.5],
        [0.5, 0.6, 3, pytest.approx(0.53), pytest.approx(2 / 3)],
        [0.9, 1.0, 1, 1.0, 1.0],
    ]
    # 2 * 0.475 = 0.95 and 3 * (2/3 - 0.53) = 0.41, over 6 findings
    assert ece(rows) == pytest.approx((0.95 + 0.41) / 6)


def test_by_chance_by_hand():
    # One of chance p: right with p and then 1 - p away, else p away: 2 p (1 - p).
    assert expected_deviation(np.array([0.3])) == pytest.approx(0.42)
    # Three of one half: 1/4 at 1.5 away, 3/4 at 0.5 away.
    assert expected_deviation(np.full(3, 0.5)) == pytest.approx(0.75)
    assert expected_deviation(np.array([0.0, 1.0])) == pytest.approx(0)
    # The two in one tenth by 0.5, the one in another by 0.18: (0.5 + 0.18) / 3.
    rows = reliability(np.array([0.5, 0.5, 0.9]), np.array([1.0, 0, 1]))
    assert ece_by_chance(rows) == pytest.approx((0.5 + 0.18) / 3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_by_chance_is_the_mean_over_all_outcomes(chances):
    expected = 0.0
    for outcome in product((0, 1), repeat=len(chances)):
        chance = np.prod([p if hit else 1 - p for p, hit in zip(chances, outcome, strict=True)])
        expected += chance * abs(sum(outcome) - sum(chances))
    assert expected_deviation(np.array(chances)) == pytest.approx(expected, abs=1e-9)


def test_by_chance_of_many_is_the_normal_one():
    # E|Z| sd = sqrt(2/pi) * sqrt(10,000 * 0.25)
    assert expected_deviation(np.full(10_000, 0.5)) == pytest.approx(39.894, abs=0.01)


def test_a_perfectly_calibrated_answer_has_the_error_it_should_have_by_chance():
    rng = np.random.default_rng(0)
    sure = rng.random(400)
    errors = []
    for _ in range(200):
        rows = reliability(sure, 1.0 * (rng.random(400) < sure))
        errors.append(ece(rows))
    assert np.mean(errors) == pytest.approx(ece_by_chance(rows), rel=0.05)


def test_intercept_by_hand():
    # All at 0.5, three of four right: logit(3/4) = ln 3.
    metrics = by_name(table([0.5] * 4, [True, True, True, False]))
    assert metrics["calibration_intercept"].value == pytest.approx(np.log(3))
    assert metrics["calibration_slope"].note.startswith("confidence tells")


def test_slope_by_hand():
    # At 0.8 (odds 4) 2 of 3 right (odds 2), at 0.5 (odds 1) 1 of 2 (odds 1): ln 2 / ln 4.
    metrics = by_name(table([0.8, 0.8, 0.8, 0.5, 0.5], [True, True, False, True, False]))
    assert metrics["calibration_slope"].value == pytest.approx(0.5)


def test_intercept_and_slope_as_statsmodels_has_them():
    rng = np.random.default_rng(4)
    sure = rng.uniform(0.05, 0.95, 300)
    odds = np.log(sure / (1 - sure))
    right = rng.random(300) < 1 / (1 + np.exp(0.4 - 0.7 * odds))
    metrics = by_name(table(sure, right))
    alone = sm.GLM(right, np.ones(300), offset=odds, family=sm.families.Binomial()).fit()
    both = sm.Logit(right, sm.add_constant(odds)).fit(disp=False)
    assert metrics["calibration_intercept"].value == pytest.approx(alone.params[0], abs=1e-7)
    assert metrics["calibration_slope"].value == pytest.approx(both.params[1], abs=1e-7)
    # Groups of one: the error is close to the one that statsmodels calls robust.
    robust = sm.Logit(right, sm.add_constant(odds)).fit(disp=False, cov_type="HC1")
    slope = metrics["calibration_slope"]
    assert (slope.high - slope.low) / 2 == pytest.approx(1.968 * robust.bse[1], rel=0.03)


def test_coarse_and_neutral_findings_do_not_count():
    metrics = by_name(table([0.9, 0.5, 0.5], [None, True, False]))
    assert metrics["ece"].n == 2


def test_certainty_has_no_odds_and_counts_as_099():
    # 1.0 wrong, 0.5 right and wrong, 0.99 right.
    certain = by_name(table([1.0, 0.5, 0.5, 0.99], [False, True, False, True]))
    nearly = by_name(table([0.99, 0.5, 0.5, 0.99], [False, True, False, True]))
    for name in ("calibration_intercept", "calibration_slope"):
        assert certain[name].value == nearly[name].value


@pytest.mark.parametrize("right", [[True, True], [False, False]])
def test_where_all_are_right_or_wrong_only_the_ece_is_defined(right):
    metrics = by_name(table([0.8, 0.6], right))
    assert metrics["calibration_intercept"].note == "all findings are right, or all are wrong"
    assert metrics["calibration_slope"].value is None
    assert metrics["ece"].value is not None


def test_confidence_that_never_errs_has_no_slope():
    metrics = by_name(table([0.9, 0.8, 0.3, 0.2], [True, True, False, False]))
    assert metrics["calibration_slope"].note.startswith("confidence tells")
    assert metrics["calibration_intercept"].value is not None


def test_no_finding_no_figure():
    for metric in calibration(table([], [])):
        assert (metric.value, metric.note) == (None, "no finding was made")
