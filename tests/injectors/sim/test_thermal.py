"""Clocks under power and heat."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.sim import thermal
from injectors.sim.job import ONE, Gpus
from injectors.sim.machine import GPUS
from injectors.sim.thermal import Boards, Clocks, Load

H100 = GPUS["h100"]
SECOND = np.array([10**9])


def board(inlet_c: int = 25, mc_per_w: int = 60, limit_w: int = 700) -> Boards:
    values = (1000 * inlet_c, mc_per_w, 1000 * limit_w, ONE)
    return Boards(*(np.array([value]) for value in values))


def load(arithmetic: float = 0.0, memory: float = 0.0, communication: float = 0.0) -> Load:
    return Load(*(np.array([round(x * ONE)]) for x in (arithmetic, memory, communication)))


def settled(of: Load, on: Boards) -> Clocks:
    clocks = Clocks(H100, on)
    clocks.settle(of)
    return clocks


def test_power_and_temperature_are_those_of_the_formula() -> None:
    clocks = settled(load(0.5, 0.25), board())
    # 75 W + 625 W * (0.98 / 2 + 0.40 / 4); 25 C + 0.06 C/W
    assert abs(int(clocks.power_mw[0]) - 443_750) < 30
    assert abs(int(clocks.temperature_mc[0]) - 51_625) < 5
    assert clocks.clock_mhz[0] == 1980 and clocks.clock_q16[0] == ONE
    assert clocks.reasons[0] == 0


def test_an_idle_device_says_so() -> None:
    clocks = settled(load(), board())
    assert clocks.power_mw[0] == 75_000 and clocks.reasons[0] == thermal.IDLE


def test_full_load_meets_the_power_limit_without_any_fault() -> None:
    clocks = settled(load(1.0, 0.4), board())
    assert clocks.reasons[0] == thermal.POWER_CAP
    assert 690_000 < clocks.power_mw[0] <= 700_000
    # It would draw 75 W + 712.5 W: fV2 may be 0.877, which is 0.92 of the clock, 1822 MHz.
    assert clocks.clock_mhz[0] == 1_815


@pytest.mark.parametrize("limit_w", [350, 450, 550])
def test_a_lower_limit_is_kept_by_the_clock(limit_w: int) -> None:
    clocks = settled(load(0.8, 0.3), board(limit_w=limit_w))
    # 75 W + 625 W * 0.904 * fV2 is the most that the limit allows.
    share = (limit_w - 75) / (625 * 0.904)
    f = clocks.clock_mhz[0] / 1980
    assert f * (0.7 + 0.3 * f) ** 2 <= share * 1.0005
    f += 15 / 1980
    assert f * (0.7 + 0.3 * f) ** 2 > share * 0.9995
    assert clocks.reasons[0] == thermal.POWER_CAP


def test_a_device_that_is_cooled_badly_settles_at_its_limit() -> None:
    clocks = settled(load(0.8, 0.3), board(inlet_c=38, mc_per_w=95))
    # (85 - 38) / 0.095 = 494.7 W
    assert 480_000 < clocks.power_mw[0] <= 494_800
    assert 83_000 < clocks.temperature_mc[0] <= 85_000
    assert clocks.reasons[0] == thermal.THERMAL
    f = clocks.clock_mhz[0] / 1980
    assert f * (0.7 + 0.3 * f) ** 2 == pytest.approx((494.7 - 75) / (625 * 0.904), abs=0.01)


def test_bad_cooling_does_not_matter_to_a_device_with_little_to_do() -> None:
    clocks = settled(load(0.2, 0.2), board(inlet_c=38, mc_per_w=95))
    assert clocks.clock_mhz[0] == 1980 and clocks.reasons[0] == 0


def test_temperature_follows_in_twenty_seconds() -> None:
    clocks = settled(load(), board())
    assert clocks.temperature_mc[0] == 29_500
    for _ in range(20):
        clocks.advance(load(0.5, 0.25), SECOND)
    # 1 - (1 + 1/20)**-20 of the way to 51.6 C; e**-1 would be 0.368.
    way = (51_625 - int(clocks.temperature_mc[0])) / (51_625 - 29_500)
    assert way == pytest.approx(1.05**-20, abs=0.002)


def test_a_device_that_heats_up_steps_its_clock_down_and_holds() -> None:
    clocks = settled(load(), board(inlet_c=38, mc_per_w=95))
    seen = []
    for _ in range(300):
        clocks.advance(load(0.8, 0.3), SECOND)
        seen.append((int(clocks.clock_mhz[0]), int(clocks.temperature_mc[0])))
    assert seen[0][0] == 1980
    assert max(temperature for _, temperature in seen) < 90_000
    late_clocks, late = zip(*seen[200:], strict=True)
    assert max(late_clocks) < 1_900 and min(late) > 80_000 and max(late) <= 88_000
    assert clocks.reasons[0] == thermal.THERMAL


def test_a_device_that_is_far_too_hot_says_so() -> None:
    clocks = settled(load(0.8, 0.3), board())
    clocks.temperature_mc = np.array([95_000])
    clocks.advance(load(0.8, 0.3), np.array([10**6]))
    assert clocks.reasons[0] & thermal.TOO_HOT and clocks.reasons[0] & thermal.SLOWDOWN


def test_healthy_boards_differ_a_little() -> None:
    found = thermal.boards(H100, Gpus(), 256, seed=1)
    assert 24_500 < found.inlet_mc.mean() < 25_500 and 500 < found.inlet_mc.std() < 1_500
    assert 1 < found.mc_per_w.std() < 4 and abs(found.mc_per_w.mean() - 60) < 1
    assert set(found.limit_mw.tolist()) == {700_000}


def test_settings_reach_their_board() -> None:
    gpus = Gpus(inlet_c={1: 40}, resistance_mc_per_w={2: 120}, power_limit_w={0: 300})
    usual = thermal.boards(H100, Gpus(), 3, seed=1)
    found = thermal.boards(H100, gpus, 3, seed=1)
    assert (found.inlet_mc - usual.inlet_mc).tolist() == [0, 15_000, 0]
    assert found.limit_mw.tolist() == [300_000, 700_000, 700_000]
    assert found.mc_per_w[2] in (2 * usual.mc_per_w[2], 2 * usual.mc_per_w[2] + 1)


def test_the_heat_path_of_a_smaller_board_is_narrower() -> None:
    found = thermal.boards(GPUS["a100"], Gpus(), 256, seed=1)
    assert abs(found.mc_per_w.mean() - 105) < 1
