"""The label rule: what paired trials must show before a case may be called faulty or healthy.

A trial is a stretch of steps of a job that runs on; its value is the mean wall time per step.
With d = ln(treated / baseline) over n pairs fixed beforehand:

- faulty: the one-sided 99 % lower t bound of exp(mean d) is above 1.05;
- healthy (twins and decoys): its one-sided 95 % upper t bound is below 1.03;
- anything else is grey and is not shipped.

The cost of a faulty case is estimated on fresh pairs, because the pairs that decided are
inflated by selection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from cases.schema import Interval
from cases.truth import Alone, PairedTrials, Validation

FAULTY_ABOVE = 1.05
HEALTHY_BELOW = 1.03
FAULTY_CONFIDENCE = 0.99
HEALTHY_CONFIDENCE = 0.95
FAULTY_RULE: Literal["faulty: one-sided 99% low > threshold"] = (
    "faulty: one-sided 99% low > threshold"
)
HEALTHY_RULE: Literal["healthy: one-sided 95% high < threshold"] = (
    "healthy: one-sided 95% high < threshold"
)


@dataclass(frozen=True)
class Decision:
    """What the pairs say: treated over baseline, with the two one-sided bounds."""

    verdict: Literal["faulty", "healthy", "grey"]
    ratio: float
    low_99: float
    high_95: float

    def __str__(self) -> str:
        return (
            f"{self.verdict}: ratio {self.ratio:.3f}, one-sided 99% low {self.low_99:.3f}"
            f" (faulty above {FAULTY_ABOVE}), one-sided 95% high {self.high_95:.3f}"
            f" (healthy below {HEALTHY_BELOW})"
        )


def log_ratios(trials: PairedTrials) -> np.ndarray:
    """Return ln(treated / baseline) of each pair, shape (pairs,)."""
    ratios: np.ndarray = np.log(np.asarray(trials.treated_s) / np.asarray(trials.baseline_s))
    return ratios


def decide(trials: PairedTrials) -> Decision:
    """Apply the rule to paired trials; at least 4 pairs.

    >>> decide(PairedTrials(baseline_s=(1, 1, 1, 1), treated_s=(2, 2.1, 1.9, 2),
    ...        treated_first=(True, False, True, False), steps_per_trial=10)).verdict
    'faulty'
    """
    return decide_from(log_ratios(trials))


def decide_from(d: np.ndarray) -> Decision:
    """Apply the rule to ln(treated / baseline) of each pair, shape (pairs,)."""
    if len(d) < 4:
        raise ValueError(f"the label rule needs at least 4 pairs, got {len(d)}")
    error = float(d.std(ddof=1)) / math.sqrt(len(d))
    low = math.exp(d.mean() - stats.t.ppf(FAULTY_CONFIDENCE, len(d) - 1) * error)
    high = math.exp(d.mean() + stats.t.ppf(HEALTHY_CONFIDENCE, len(d) - 1) * error)
    verdict: Literal["faulty", "healthy", "grey"] = "grey"
    if low > FAULTY_ABOVE:
        verdict = "faulty"
    elif high < HEALTHY_BELOW:
        verdict = "healthy"
    return Decision(verdict, math.exp(d.mean()), low, high)


def lost_fraction(trials: PairedTrials, confidence: float = 0.95) -> Interval:
    """Estimate 1 - healthy/faulty wall time with a two-sided t interval on the log ratio."""
    d = log_ratios(trials)
    half = stats.t.ppf((1 + confidence) / 2, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d))
    value, low, high = (1 - math.exp(-x) for x in (d.mean(), d.mean() - half, d.mean() + half))
    return Interval(value=value, low=low, high=high)


def validation(
    acceptance: PairedTrials,
    fresh: PairedTrials | None,
    shipped_ratio: float,
    alone: tuple[Alone, ...] = (),
) -> Validation | Decision:
    """Build the record of an accepted label, or return the grey decision."""
    decision = decide(acceptance)
    if decision.verdict == "grey":
        return decision
    faulty = decision.verdict == "faulty"
    return Validation(
        rule=FAULTY_RULE if faulty else HEALTHY_RULE,
        threshold=FAULTY_ABOVE if faulty else HEALTHY_BELOW,
        acceptance=acceptance,
        fresh=fresh if faulty else None,
        ratio=Interval(value=decision.ratio, low=decision.low_99, high=decision.high_95),
        shipped_ratio=shipped_ratio,
        decision=decision.verdict,
        alone=alone,
    )


def recompute(recorded: Validation) -> list[str]:
    """Apply the rule again to the raw samples; returns what does not hold, best empty."""
    decision = decide(recorded.acceptance)
    problems = []
    if decision.verdict != recorded.decision:
        problems.append(f"the samples say {decision}, the label says {recorded.decision}")
    found = (decision.ratio, decision.low_99, decision.high_95)
    stored = (recorded.ratio.value, recorded.ratio.low, recorded.ratio.high)
    if not np.allclose(found, stored, rtol=1e-9):
        problems.append(f"the samples give ratio and bounds {found}, the label states {stored}")
    threshold = FAULTY_ABOVE if recorded.decision == "faulty" else HEALTHY_BELOW
    if recorded.threshold != threshold:
        problems.append(f"the threshold must be {threshold}, the label states {recorded.threshold}")
    if not shows(recorded.decision, recorded.shipped_ratio):
        problems.append(
            f"the shipped recording does not show it: ratio {recorded.shipped_ratio:.3f}"
        )
    if recorded.decision == "faulty" and (
        recorded.fresh is None or len(recorded.fresh.baseline_s) < 4
    ):
        problems.append("a faulty label needs at least 4 fresh pairs for its cost")
    return problems


def shows(decision: str, shipped_ratio: float) -> bool:
    """Tell whether the one recording that is shipped shows what the trials decided.

    A single recording is noisier than the trials: a healthy one may differ from its reference
    run by a factor of 1.05 either way, a faulty one must be more than that slower than its twin.
    """
    if decision == "faulty":
        return shipped_ratio > FAULTY_ABOVE
    return 1 / FAULTY_ABOVE <= shipped_ratio <= FAULTY_ABOVE
