"""A figure with its interval, and why it may have none."""

from __future__ import annotations

from dataclasses import dataclass

from scorers.intervals import Bounds

# The mix of cases that a diagnoser is taken to meet in use.
PREVALENCE: dict[str, float] = {"faulty": 0.2, "healthy": 0.7, "undecidable": 0.1}
NO_CASE = {verdict: f"no {verdict} case" for verdict in PREVALENCE}
NO_FINDING = "no finding was made"


@dataclass(frozen=True)
class Metric:
    """A figure with its 95 % interval; None where it is undefined, and `note` says why.

    `n` counts the units it is over, `groups` the groups that they come from.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    groups: int
    note: str | None = None

    @classmethod
    def undefined(cls, name: str, note: str) -> Metric:
        """Return a figure that has no value."""
        return cls(name, None, None, None, 0, 0, note)

    @classmethod
    def bounded(cls, name: str, value: float, bounds: Bounds, n: int, groups: int) -> Metric:
        """Return a figure with its bounds, and their note if there are none."""
        return cls(name, value, bounds.low, bounds.high, n, groups, bounds.note)
