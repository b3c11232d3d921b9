"""Clocks, held against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.fleet import clocks
from injectors.fleet.clocks import POWER_CAP_BIT, THERMAL_BIT, Limits, settle
from injectors.sim.noise import ONE_Q16

HOUR_NS = 3_600 * 10**9


def one(**changes: int) -> clocks.Clocks:
    """A board of 250 W that idles at 50 W and would draw 200 W more at full clock."""
    usual = {
        "inlet_mc": 24_000,
        "resistance": 200,  # 74 degrees at 250 W; the limit of 85 at 305 W
        "silicon_q16": ONE_Q16,
        "load_w": 200,
        "idle_w": 50,
        "limit_w": 250,
    }
    return settle(Limits(**{k: np.array([v]) for k, v in {**usual, **changes}.items()}))


def test_a_board_that_just_fits_runs_at_full_clock() -> None:
    found = one()
    assert (found.clock_q16[0], found.power_w[0]) == (ONE_Q16, 250)
    assert (found.temperature_c[0], found.reasons[0]) == (74, 0)


@pytest.mark.parametrize(
    ("changes", "clock", "reason"),
    [
        ({"limit_w": 100}, 0.5, POWER_CAP_BIT),  # sqrt((100 - 50) / 200)
        ({"silicon_q16": 4 * ONE_Q16}, 0.5, POWER_CAP_BIT),  # sqrt(200 / 800)
        # 61 degrees above the inlet at 610 mC/W: 100 W, of which 50 W do work.
        ({"resistance": 610}, 0.5, THERMAL_BIT),
        ({"load_w": 100}, 1.0, 0),
        ({"load_w": 20_000}, 0.25, POWER_CAP_BIT),  # never below a quarter
    ],
)
def test_the_clock_goes_with_the_root_of_what_is_allowed(
    changes: dict[str, int], clock: float, reason: int
) -> None:
    found = one(**changes)
    assert found.clock_q16[0] == clock * ONE_Q16
    assert found.reasons[0] == reason


def test_a_throttled_chip_stands_at_its_limit() -> None:
    assert one(resistance=610).temperature_c[0] == 85


def test_warm_air_costs_what_leaks() -> None:
    # 10 degrees: 6 % more power for the same clock, so 1 / sqrt(1.06) of it.
    found = one(inlet_mc=34_000)
    assert found.clock_q16[0] / ONE_Q16 == pytest.approx(1.06**-0.5, abs=1e-3)


def test_the_day_has_its_course() -> None:
    hours = np.arange(24) * HOUR_NS
    temperature = clocks.inlet_mc(7, hours, np.full(24, ONE_Q16))
    assert temperature.argmin() == 3
    assert temperature.argmax() == 15
    assert temperature.max() - temperature.min() == 5800
    # Half way between 3 and 6 hours, -2.9 and -2.5 degrees.
    halfway = clocks.inlet_mc(7, np.array([9 * HOUR_NS // 2]), np.array([ONE_Q16]))[0]
    assert halfway - temperature[3] == 200


def test_an_excess_warms_by_its_share_above_20_degrees() -> None:
    usual, warm = (
        clocks.inlet_mc(7, np.array([0]), np.array([factor]))[0]
        for factor in (ONE_Q16, 3 * ONE_Q16 // 2)
    )
    assert warm - usual == 2000
