"""Making a fault cost what it shall: its strength is searched between a mild and a strong one.

Cases whose signals are withheld must not be told apart by how slow they are, so all candidates of
a group are aimed at the same slowdown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cases.digest import document_digest
from injectors.scenario import Arm

TRIES = 14
# Relative to the slowdown that is aimed at. Searches end at strengths of their own, so what is as
# far off as this can tell candidates of the same job apart.
CLOSE = 0.001
NARROW = 1.15  # ends whose slowdowns are within this factor: between them costs are on a line
FAIR = 0.03  # the same where nothing closer was found
DIGITS = 6

Slowdown = Callable[[Arm], float]  # of an arm: step time over the healthy job's, same seed


@dataclass(frozen=True)
class Dial:
    """A fault between two strengths.

    Attributes:
        mild, strong: Arms with the same parameters; numbers between them are searched.
        coarse: Whether it has so few strengths that the other candidates must aim at one of these.
    """

    mild: Arm
    strong: Arm
    coarse: bool = False


@dataclass(frozen=True)
class Aim:
    """What an arm of a group is aimed at.

    Attributes:
        arm: Name of the arm.
        slowdown: What it shall cost.
        dial: Of the arm.
        rivals: Dials of the other causes that its evidence fits as well.
    """

    arm: str
    slowdown: float
    dial: Dial
    rivals: tuple[Dial, ...] = ()

    @property
    def digest(self) -> str:
        """Content digest, as that of a scenario."""
        arms = [
            arm.model_dump(mode="json", exclude_defaults=True)
            for dial in (self.dial, *self.rivals)
            for arm in (dial.mild, dial.strong)
        ]
        return document_digest({"arm": self.arm, "slowdown": self.slowdown, "arms": arms})


def aimed(aim: Aim, slowdown_of: Slowdown) -> Arm | str:
    """Return the arm that costs what it shall, or say with numbers why none does.

    A rival that can't cost as much would be ruled out by the cost alone.
    """
    target = aim.slowdown
    for dial in (aim.dial, *aim.rivals):
        if dial.coarse:
            target = nearest(dial, target, slowdown_of)[1]
    for dial in aim.rivals:
        most = slowdown_of(dial.strong)
        if not dial.coarse and most < target * (1 - FAIR):
            return f"{dial.mild.fault} can't cost {target:.3f} times the time, {most:.3f} at most"
    arm, found = nearest(aim.dial, target, slowdown_of)
    if not aim.dial.coarse and abs(found - target) > FAIR * target:
        return f"can't be made to cost {target:.3f} times the time, {found:.3f} is nearest"
    return arm


def nearest(dial: Dial, target: float, slowdown_of: Slowdown) -> tuple[Arm, float]:
    """Search the arm whose slowdown is nearest to `target`; costs must rise with the strength."""
    mild, strong = dial.mild, dial.strong
    best = strong, slowdown_of(strong)
    low, high = 0.0, best[1]  # what the ends cost, as far as is known
    if high <= target:
        return best
    for _ in range(TRIES):
        near = high <= NARROW * low
        middle = between(mild, strong, (target - low) / (high - low) if near else None)
        if middle in (mild, strong):
            break
        found = slowdown_of(middle)
        if abs(found - target) < abs(best[1] - target):
            best = middle, found
        if abs(best[1] - target) <= CLOSE * target:
            break
        if found < target:
            mild, low = middle, found
        else:
            strong, high = middle, found
    return best


def between(mild: Arm, strong: Arm, share: float | None = None) -> Arm:
    """Return the arm in the middle, or a share of the way; whole numbers are rounded.

    Without a share numbers are at their geometric mean.

    >>> arms = [Arm(fault="gpu_noisy_neighbor", parameters={"processes": n}) for n in (1, 9)]
    >>> between(*arms).parameters, between(*arms, 0.5).parameters
    ({'processes': 3}, {'processes': 5})
    """
    found = {
        name: _middle(value, strong.parameters[name], share)
        for name, value in mild.parameters.items()
    }
    return Arm.model_validate({"fault": mild.fault, "parameters": found})


def _middle(low: Any, high: Any, share: float | None) -> Any:
    if low == high or isinstance(low, (str, bool)):
        return low
    # Sums, products and square roots are rounded alike everywhere; powers are not.
    middle = math.sqrt(low * high) if share is None else low + (high - low) * share
    return round(middle) if isinstance(low, int) else round(middle, DIGITS)
