"""Findings as forecasts: the Brier score over (case, cause)."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Finding
from scorers.inputs import Label
from scorers.settling import Judgement


def brier(findings: Sequence[Finding], label: Label, judgement: Judgement) -> float:
    """Return the case's part of Brier's score (1950): squared errors summed over causes.

    Confidence is the probability that cause and place are right. A cause that is a fault of
    the case should have had 1 and had the greatest confidence of the findings right for it, 0
    if there are none: what is left out was given no chance. A cause that false findings blame
    should have had 0 and had their greatest confidence; the right cause in a wrong place is
    such a one beside the right one. What is right as far as it goes is no forecast of a cause.

    Returns:
        0 for a sure and right answer (or silence on a healthy case), at most the number of
        causes that are true or blamed.
    """
    given: dict[str, float] = {}
    if judgement.buckets:
        for fault, right in zip(label.faults, judgement.credits, strict=True):
            surest = max([findings[i].confidence for i in right], default=0.0)
            given[fault.cause] = max(surest, given.get(fault.cause, 0.0))
    wrongly: dict[str, float] = {}
    for i, status in enumerate(judgement.statuses):
        if status == "false":
            cause, confidence = findings[i].cause, findings[i].confidence
            wrongly[cause] = max(confidence, wrongly.get(cause, 0.0))
    # Sorted, so that the order of the findings cannot decide the last bit.
    losses = [(1 - chance) ** 2 for chance in given.values()]
    losses += [chance**2 for chance in wrongly.values()]
    return sum(sorted(losses))
