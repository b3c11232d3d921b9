"""Paired differences: values by hand, intervals that know how little a few groups show."""

from __future__ import annotations

import pandas as pd
import pytest

from harness.degrade.effects import EFFECTS, difference, net_benefit
from scorers import Scores
from scorers.rates import rate_bounds

EMPTY = pd.DataFrame()


def table(values: list[float], groups: int) -> pd.DataFrame:
    names = [f"g{i % groups}" for i in range(len(values))]
    return pd.DataFrame({"group": names, "right": values})


def cases(found: dict[str, list[float]], misled: dict[str, list[float]]) -> Scores:
    rows = [
        {
            "case_id": f"{verdict}{i}",
            "group": f"g{i}",
            "verdict": verdict,
            "misled": bool(wrong),
            "acted_found_w1": right,
            "acted_misled_w1": wrong,
        }
        for verdict in found
        for i, (right, wrong) in enumerate(zip(found[verdict], misled[verdict], strict=True))
    ]
    faults = pd.DataFrame({"group": [], "right_cause_and_locus": []})
    return Scores(pd.DataFrame(rows), faults, EMPTY, EMPTY, {})


def test_gains_and_losses_by_hand() -> None:
    # Of eight: one gained, three lost.
    first, second = table([1, 0, 0, 0, 1, 1, 0, 0], 8), table([0, 1, 1, 1, 1, 1, 0, 0], 8)
    found = difference("recall", first, second, "right")
    assert found.value == pytest.approx(-2 / 8)
    assert (found.n, found.groups) == (8, 8)
    assert found.low < -0.25 < found.high
    other = difference("recall", second, first, "right")
    assert (other.low, other.high) == pytest.approx((-found.high, -found.low))


def test_no_difference_is_not_known_better_than_rates_of_zero() -> None:
    same = table([1, 0] * 4, 8)
    found = difference("recall", same, same, "right")
    assert found.value == 0
    zero = rate_bounds(same["right"].to_numpy() * 0.0, same.index.to_numpy())
    assert found.high == pytest.approx(zero.high)  # as much may have been gained and not seen
    assert found.low == pytest.approx(-zero.high)  # or lost


def test_few_groups_have_no_interval() -> None:
    found = difference("recall", table([1.0] * 10, 5), table([0.0] * 10, 5), "right")
    assert (found.value, found.low, found.high) == (1.0, None, None)
    assert "at least 6" in found.note


def test_net_benefit_weighs_verdicts_as_they_are_met() -> None:
    found = {"faulty": [1.0] * 8, "healthy": [0.0] * 8, "undecidable": [0.0] * 8}
    quiet = {"faulty": [0.0] * 8, "healthy": [0.0] * 8, "undecidable": [0.0] * 8}
    loud = quiet | {"healthy": [1.0] * 4 + [0.0] * 4}
    first, second = cases(found, quiet), cases(found, loud)
    assert net_benefit(first, second).value == pytest.approx(0.7 * 4 / 8)
    assert EFFECTS["misled_avoided"](first, second).value == pytest.approx(4 / 24)
    missed = cases(quiet, quiet)
    assert net_benefit(first, missed).value == pytest.approx(0.2)


def test_absent_verdicts_leave_the_mix_to_the_others() -> None:
    right, wrong = (cases({"faulty": [x] * 6}, {"faulty": [0.0] * 6}) for x in (1.0, 0.0))
    assert net_benefit(right, wrong).value == pytest.approx(1.0)


def test_no_case_no_figure() -> None:
    none = cases({"faulty": []}, {"faulty": []})
    none = Scores(pd.DataFrame(columns=["verdict", "group"]), none.faults, EMPTY, EMPTY, {})
    assert net_benefit(none, none).value is None
    assert EFFECTS["recall"](none, none).note == "no case"
