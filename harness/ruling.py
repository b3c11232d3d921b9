"""What the gate says: one ruling a rule, and the report that settles them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.stored import Metric

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
    """All rulings on one result; `verdict` has settled what inconclusive means."""

    suite: str
    suite_digest: str
    scoring_version: str
    result: str
    baseline: str | None
    inconclusive: Literal["pass", "stop"]
    rulings: tuple[Ruling, ...]

    @property
    def verdict(self) -> Literal["pass", "stop"]:
        """Return stop if any rule stops, or is inconclusive under a policy that minds."""
        stops = {"stop"} if self.inconclusive == "pass" else {"stop", "inconclusive"}
        return "stop" if any(ruling.verdict in stops for ruling in self.rulings) else "pass"


def show(metric: Metric) -> str:
    """Return a metric with its interval.

    >>> show(Metric(value=0.25, low=0.1, high=0.5)), show(Metric())
    ('0.25 [0.1, 0.5]', 'none')
    """
    if metric.value is None:
        return "none"
    bounds = metric.low is not None and metric.high is not None
    return f"{metric.value:.3g}" + (f" [{metric.low:.3g}, {metric.high:.3g}]" if bounds else "")
