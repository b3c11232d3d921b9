"""What the gate says: one ruling a rule, and the report that settles them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "stop", "inconclusive"]


@dataclass(frozen=True)
class Ruling:
    """What one rule said: its name, its verdict, the numbers found and the reason."""

    rule: str
    verdict: Verdict
    found: str
    why: str


@dataclass(frozen=True)
class GateReport:
    """All rulings on one result.

    Attributes:
        alpha: Bound on the chance of stopping a result that is within all limits and no worse than
            the baseline.
        splits: Which splits some rule looked at.
        inconclusive: What the policy makes of an inconclusive verdict.
        public_test_use: How often gates have used the suite's public test split from here, this
            time included; None if this one did not.
    """

    suite: str
    suite_digest: str
    scoring_version: str
    result: str
    baseline: str | None
    alpha: float
    splits: tuple[str, ...]
    inconclusive: Literal["pass", "stop"]
    rulings: tuple[Ruling, ...]
    public_test_use: int | None = None

    @property
    def verdict(self) -> Verdict:
        """Stop if any rule stops, else inconclusive if any is, else pass."""
        found = {ruling.verdict for ruling in self.rulings}
        order: tuple[Verdict, ...] = ("stop", "inconclusive", "pass")
        return next((verdict for verdict in order if verdict in found), "pass")

    @property
    def passed(self) -> bool:
        """Whether the exit status is 0: inconclusive counts as the policy says."""
        verdict = self.verdict
        return (self.inconclusive if verdict == "inconclusive" else verdict) == "pass"


def show(value: float | None, low: float | None, high: float | None) -> str:
    """Return a figure with its bounds.

    >>> show(0.25, 0.1, 0.5), show(None, None, None)
    ('0.25 [0.1, 0.5]', 'none')
    """
    if value is None:
        return "none"
    bounds = low is not None and high is not None
    return f"{value:.3g}" + (f" [{low:.3g}, {high:.3g}]" if bounds else "")
