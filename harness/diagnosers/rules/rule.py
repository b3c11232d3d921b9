"""One line of the decision list: when a cause holds, where it sits, and what shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases.schema import Scope
from harness.diagnosers.features.facts import Facts

When = Callable[[Facts], bool]


@dataclass(frozen=True)
class Rule:
    """A cause and what makes it the answer.

    Attributes:
        cause: Its name in the taxonomy.
        when: Whether the facts show it. A fact that is not known (NaN) shows nothing.
        cites: Facts that are its evidence, such as `hot.max`; the first is the decisive one.
        scope: What kind of place it has.
        place: The metric that tells ranks apart; `-clock` where the least is the place. Without
            one the place is the whole job.
        rivals: Causes that look alike -> why it is none of them.
        sure: Confidence in cause and place, as counted on the train split.
    """

    cause: str
    when: When
    cites: tuple[str, ...]
    scope: Scope = "job"
    place: str = ""
    rivals: tuple[tuple[str, str], ...] = ()
    sure: float = 0.9
