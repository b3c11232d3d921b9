"""Confounders: what makes a fleet's averages mislead while no job's steps are slower for it.

Each changes which jobs come, when and with what, in one of the periods or both. None is an
injection: what it changes is the traffic, except for the weather, whose cost is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from injectors.fleet.fleet import Fleet
from injectors.fleet.parameters import Edit
from injectors.fleet.settings import Arm, FleetGroup
from injectors.fleet.traffic import Traffic

FASTER_PERMILLE = 1035  # what a new version gains that attracts heavy jobs, or all
WARMER_PERMILLE = 1500  # air above 20 C in a warm period: 2 degrees more
HEAVIER, LONGER_PERCENT = 4, 30


@dataclass(frozen=True)
class Confounder:
    """One confounder.

    Attributes:
        about: What happens, and where it was documented.
        looks_like: Causes that it is mistaken for.
        later: Changes of the later period's traffic.
        earlier: Changes of the earlier period's.
        gain: Whether a new version that jobs choose is faster than the old ones.
        warmer: Whether the later period is warm, the cost of which is measured.
        scattered: Whether machines differ widely, in both periods.
        longer: Whether more jobs of the later period have long inputs.
    """

    about: str
    looks_like: tuple[str, ...]
    later: dict[str, Any] = field(default_factory=dict)
    earlier: dict[str, Any] = field(default_factory=dict)
    gain: bool = False
    warmer: bool = False
    scattered: bool = False
    longer: bool = False


CONFOUNDERS: dict[str, Confounder] = {
    "job_mix_shift": Confounder(
        "Heavier jobs come while every kind of job is faster on the new version that all run"
        " (Simpson's reversal; Cool Maze: overall 10 to 15 %, both segments better).",
        ("kernel_regression", "storage_fetch_stall"),
        later={"heavier": HEAVIER},
        gain=True,
    ),
    "traffic_mix": Confounder(
        "A new version is faster and attracts the heavy jobs, so its average is worse.",
        ("kernel_regression", "nccl_tuning_regression"),
        gain=True,
    ),
    "survivor_bias": Confounder(
        "Jobs with long inputs used to be killed before they could report; now they finish"
        " (ByteDance: jobs that fail leave the analysis).",
        ("kernel_regression", "vram_sysmem_spill"),
        earlier={"blind": True, "slack_percent": (103, 125)},
    ),
    "killed_jobs": Confounder(
        "Jobs ask for hardly more time than they need, so those that become slower vanish.",
        (),
        later={"slack_percent": (104, 140)},
    ),
    "diurnal_temperature": Confounder(
        "Warm weather, and more jobs by day (Llama 3: throughput varies by 1 to 2 % in a day).",
        ("thermal_throttle", "power_cap"),
        later={"day_percent": 75},
        earlier={"day_percent": 25},
        warmer=True,
    ),
    "machine_scatter": Confounder(
        "Machines differ by several percent all the time (8 % on average, at most 22 %).",
        ("gpu_silicon_variability", "thermal_throttle"),
        scattered=True,
    ),
    "two_mode_shift": Confounder(
        "Inputs come in two sizes, and more of them are long, at equal configurations.",
        ("kernel_regression", "dataloader_cpu_bound"),
        longer=True,
    ),
}


@dataclass(frozen=True)
class Setting:
    """What an arm's confounders make of the two periods.

    Attributes:
        traffic: Of the earlier and of the later period.
        gains: Edits that are there with and without the fault.
        weather: Edits of the weather, an injection of its own.
    """

    traffic: tuple[Traffic, Traffic]
    gains: tuple[Edit, ...]
    weather: tuple[Edit, ...]
    scattered: bool


def setting(group: FleetGroup, arm: Arm, fleet: Fleet) -> Setting:
    """Apply an arm's confounders to its group's traffic."""
    chosen = [CONFOUNDERS[name] for name in arm.confounders]
    later = earlier = Traffic(long_percent=group.long_percent)
    for confounder in chosen:
        later, earlier = replace(later, **confounder.later), replace(earlier, **confounder.earlier)
        if confounder.longer:
            later = replace(later, long_percent=group.long_percent + LONGER_PERCENT)
    if "traffic_mix" in arm.confounders:
        later = replace(later, attracts=frozenset({arm.attracts}))
    if "job_mix_shift" in arm.confounders:
        later = replace(later, at_once=frozenset({arm.attracts}))
    return Setting(
        traffic=(earlier, later),
        gains=_gains(chosen, arm, fleet),
        weather=_weather(chosen),
        scattered=any(confounder.scattered for confounder in chosen),
    )


def _gains(chosen: Sequence[Confounder], arm: Arm, fleet: Fleet) -> tuple[Edit, ...]:
    if not any(confounder.gain for confounder in chosen):
        return ()
    newest: dict[str, str] = {arm.attracts: fleet.versions[arm.attracts][2]}
    return (Edit("compute_efficiency", newest, FASTER_PERMILLE),)


def _weather(chosen: Sequence[Confounder]) -> tuple[Edit, ...]:
    if not any(confounder.warmer for confounder in chosen):
        return ()
    return (Edit("inlet_excess", {}, WARMER_PERMILLE),)
