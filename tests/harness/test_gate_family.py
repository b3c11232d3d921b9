"""Rules that share one error, and how often such a gate errs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate_family import Settled, settle
from harness.ruling import Ruling
from scorers.flips import holm
from tests.bench.gate import ALPHA, at_least, stops


@dataclass
class Known:
    """A rule whose p value is known; None for one that is no test and never broken."""

    p_value: float | None
    asked: list[float] = field(default_factory=list)

    @property
    def statistical(self) -> bool:
        return self.p_value is not None

    def broken(self, error: float) -> bool:
        self.asked.append(error)
        assert self.p_value is not None
        return self.p_value <= error

    def ruling(self, settled: Settled) -> Ruling:
        return Ruling("", "stop" if settled.stopped else "pass", f"{settled.error:.4g}", "")


def verdicts(p_values: list[float | None], alpha: float = 0.05) -> list[str]:
    return [ruling.verdict for ruling in settle([Known(p) for p in p_values], alpha)]


def test_each_broken_rule_leaves_its_share_to_the_rest() -> None:
    # Four tests: 0.0125, then 0.05/3 = 0.0167, then 0.025, then 0.05.
    assert verdicts([0.012, 0.016, 0.02, 0.06]) == ["stop", "stop", "stop", "pass"]
    assert verdicts([0.013, 0.016, 0.02, 0.04]) == ["pass"] * 4
    assert verdicts([0.04, None, None]) == ["stop", "pass", "pass"]
    assert settle([], 0.05) == []
    shown = [ruling.found for ruling in settle([Known(0.012), Known(0.03)], 0.05)]
    assert shown == ["0.025", "0.05"]  # the errors at which each was settled


@given(st.lists(st.floats(0, 0.2), max_size=8), st.sampled_from([0.01, 0.05, 0.1]))
def test_it_is_holms_procedure(p_values: list[float], alpha: float) -> None:
    expected = ["stop" if p <= alpha else "pass" for p in holm(p_values)]
    if all(abs(p - alpha) > 1e-9 for p in holm(p_values)):
        assert verdicts(list(p_values), alpha) == expected


def test_bound_of_a_rate() -> None:
    # No event bounds nothing; of 1 in 100, 1 - 0.99 ** (1/100) by hand.
    assert at_least(0, 100) == 0.0
    assert at_least(1, 100) == pytest.approx(1 - 0.99**0.01)


@pytest.mark.parametrize("disagree", [0.05, 0.15, 0.30])
def test_diagnosers_that_differ_by_chance_are_seldom_stopped(disagree: float) -> None:
    """In small; `tests.bench.gate` in full. Limits lie where the diagnosers truly are."""
    runs = 60
    assert at_least(stops(120, disagree, 0.0, runs), runs) <= ALPHA


def test_a_rule_that_makes_things_worse_is_stopped() -> None:
    """A drop of 20 points in 300 cases that differ in 30 %; 10 points are seen less often."""
    runs = 20
    large, small = (stops(300, 0.3, drop, runs, limits=False) for drop in (0.2, 0.05))
    assert large >= 18
    assert small < large
