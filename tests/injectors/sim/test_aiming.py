"""Searching how strong a fault must be to cost what it shall, on costs that are formulas."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from injectors.scenario import Arm
from injectors.sim.aiming import CLOSE, FAIR, Aim, Dial, aimed, between, nearest


def work(extra_ms: float) -> Arm:
    return Arm(fault="rank_extra_host_work", parameters={"rank": 1, "extra_ms": extra_ms})


def neighbours(count: int) -> Arm:
    return Arm(fault="gpu_noisy_neighbor", parameters={"rank": 1, "processes": count})


WORK = Dial(work(0.1), work(100.0))
NEIGHBOURS = Dial(neighbours(1), neighbours(4), coarse=True)


def slowdown_of(arm: Arm) -> float:
    """A step of 100 ms and the work; a neighbour makes it 1.3 times as long."""
    if arm.fault == "gpu_noisy_neighbor":
        return float(1.3 ** arm.parameters["processes"])
    return 1 + float(arm.parameters["extra_ms"]) / 100


@pytest.mark.parametrize("slowdown", [1.05, 1.2, 1.37, 1.9])
def test_the_strength_that_costs_what_it_shall_is_found(slowdown: float) -> None:
    arm = aimed(Aim("w", slowdown, WORK), slowdown_of)
    assert isinstance(arm, Arm) and arm.parameters["rank"] == 1
    assert slowdown_of(arm) == pytest.approx(slowdown, rel=CLOSE)


def test_the_middle_is_geometric_and_whole_where_the_ends_are() -> None:
    assert between(work(1.0), work(100.0)).parameters == {"rank": 1, "extra_ms": 10.0}
    assert between(neighbours(1), neighbours(4)).parameters == {"rank": 1, "processes": 2}


def test_what_is_no_number_stays_as_it_is() -> None:
    ends = [
        Arm(
            fault="kernel_regression",
            parameters={"layers": 1, "family": "gemm", "efficiency": efficiency},
        )
        for efficiency in (0.9, 0.1)
    ]
    middle = between(*ends).parameters
    assert middle == {"layers": 1, "family": "gemm", "efficiency": 0.3}


def test_a_strength_that_is_too_small_says_so_with_numbers() -> None:
    found = aimed(Aim("w", 2.5, WORK), slowdown_of)
    assert found == "can't be made to cost 2.500 times the time, 2.000 is nearest"


def test_a_rival_that_cannot_cost_as_much_says_so() -> None:
    rival = Dial(work(0.1), work(10.0))
    found = aimed(Aim("w", 1.5, WORK, (rival,)), slowdown_of)
    assert found == "rank_extra_host_work can't cost 1.500 times the time, 1.100 at most"


def test_all_candidates_cost_what_the_coarsest_can() -> None:
    """Two neighbours make 1.69, the nearest to 1.6 that there is."""
    for dial, rival in ((WORK, NEIGHBOURS), (NEIGHBOURS, WORK)):
        arm = aimed(Aim("w", 1.6, dial, (rival,)), slowdown_of)
        assert isinstance(arm, Arm)
        assert slowdown_of(arm) == pytest.approx(1.69, rel=CLOSE)


def test_the_nearest_is_found_where_none_is_close() -> None:
    arm, found = nearest(NEIGHBOURS, 2.0, slowdown_of)
    assert arm.parameters["processes"] == 3 and found == pytest.approx(1.3**3)
    assert nearest(NEIGHBOURS, 9.0, slowdown_of)[0] == NEIGHBOURS.strong
    assert abs(found - 2.0) > FAIR * 2.0


def rate(mbit_per_s: float) -> Arm:
    parameters = {"host": 0, "rate_mbit_per_s": mbit_per_s}
    return Arm(fault="nic_degraded", parameters=parameters)


def slower_when_lower(arm: Arm) -> float:
    """Hidden at first, then as long as the bytes take."""
    return max(1.0, 0.8 + 20_000 / float(arm.parameters["rate_mbit_per_s"]))


@pytest.mark.parametrize("target", [1.12, 1.2, 1.3, 1.37, 1.5])
@pytest.mark.parametrize(
    ("dial", "curve"),
    [(WORK, slowdown_of), (Dial(rate(400_000.0), rate(1_000.0)), slower_when_lower)],
)
def test_the_search_is_short_and_ends_near_whatever_the_curve(
    dial: Dial, curve: Callable[[Arm], float], target: float
) -> None:
    """Were it to end further off, at its own few strengths, these would tell candidates apart."""
    asked: list[Arm] = []

    def counted(arm: Arm) -> float:
        asked.append(arm)
        return curve(arm)

    found = nearest(dial, target, counted)[1]
    assert len(asked) <= 8
    assert found == pytest.approx(target, rel=0.001)


def test_aims_that_differ_have_different_digests() -> None:
    aims = [
        Aim("w", 1.2, WORK),
        Aim("w", 1.3, WORK),
        Aim("v", 1.2, WORK),
        Aim("w", 1.2, NEIGHBOURS),
        Aim("w", 1.2, WORK, (NEIGHBOURS,)),
    ]
    assert len({aim.digest for aim in aims}) == len(aims)
