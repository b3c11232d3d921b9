"""One arm of a group as two periods of a fleet, and what its fault costs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cases.truth import set_name
from injectors.fleet.confounders import Setting, setting
from injectors.fleet.faults import LEAST_JOBS, edits, segment
from injectors.fleet.fleet import Fleet
from injectors.fleet.parameters import Edit, matches
from injectors.fleet.period import Period, Periods
from injectors.fleet.settings import Arm
from injectors.fleet.steps import Steps, run
from injectors.fleet.traffic import Traffic
from injectors.sim import noise

WEATHER = "thermal_throttle"  # what a warm period would be called, did it cost anything


@dataclass(frozen=True)
class Trial:
    """One arm under its group's key: all that is random follows from the key and from names.

    Attributes:
        periods: The group's periods.
        arm: The arm.
    """

    periods: Periods
    arm: Arm

    @cached_property
    def _arm_key(self) -> int:
        return noise.key(self.periods.key, "arm", self.arm.name)

    @cached_property
    def setting(self) -> Setting:
        """What the arm's confounders make of the two periods."""
        group = self.periods.group
        return setting(group, self.arm, Fleet(group, self.periods.key))

    @cached_property
    def earlier(self) -> Period:
        """The reference period."""
        return self.periods.get(self.setting.traffic[0], False, self.setting.scattered)

    @cached_property
    def later(self) -> Period:
        """The period that is asked about."""
        return self.periods.get(self.setting.traffic[1], True, self.setting.scattered)

    @cached_property
    def segment(self) -> dict[str, str]:
        """The fault's segment; empty, which is all jobs, where there is none.

        It is chosen among the group's ordinary jobs, so that confounders do not choose it.
        """
        if self.arm.fault is None:
            return {}
        ordinary = Traffic(long_percent=self.periods.group.long_percent)
        plain = self.periods.get(ordinary, True, self.setting.scattered)
        return segment(plain.world, self.arm.fault, self._arm_key)

    @cached_property
    def injections(self) -> tuple[tuple[str, tuple[Edit, ...]], ...]:
        """What is injected, the fault first: causes and their edits."""
        found = []
        if self.arm.fault:
            own = edits(self.arm.fault, self.segment, self._arm_key)
            found.append((self.arm.fault.cause, own))
        if self.setting.weather:
            found.append((WEATHER, self.setting.weather))
        return tuple(found)

    def steps(self, injected: Sequence[int]) -> Steps:
        """Time the later period's steps with some of the injections, by number."""
        chosen = [edit for number in injected for edit in self.injections[number][1]]
        return run(self.later.world, [*self.setting.gains, *chosen])

    @cached_property
    def shipped(self) -> Steps:
        """The later period as it is shipped, with all injections."""
        return self.steps(range(len(self.injections)))

    @cached_property
    def affected(self) -> NDArray[np.bool_]:
        """Jobs of the segment, whose steps the label compares."""
        return matches(self.later.world.columns, self.segment)

    def seconds(self) -> dict[str, tuple[float, ...]]:
        """Mean seconds of a step of the segment's jobs under every set of the injections.

        Raises:
            ValueError: the segment has too few jobs to be found.
        """
        numbers = range(len(self.injections))
        return {
            set_name(chosen): (mean_s(self.steps(chosen), self.affected),)
            for size in range(len(self.injections) + 1)
            for chosen in combinations(numbers, size)
        }


def mean_s(steps: Steps, chosen: NDArray[np.bool_]) -> float:
    """Mean seconds of a step over the chosen jobs, each counting once, however it ended."""
    count = int(np.count_nonzero(chosen))
    if count < LEAST_JOBS:
        raise ValueError(f"the segment must have at least {LEAST_JOBS} jobs, got {count}")
    # One correctly rounded division of whole numbers: the same on every machine.
    return int(steps.step_ns[chosen].sum()) / (count * 10**9)
