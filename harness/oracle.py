"""The oracle: answers from the labels, to show that a perfect score can be reached.

It never runs where diagnosers run; its results are marked as of isolation `oracle` and are
not ranked.
"""

from __future__ import annotations

from cases.schema import MAX_ROOTS, Diagnosis, Finding
from scorers import Label


def right_answer(label: Label) -> Diagnosis:
    """Return the answer that nothing can be held against."""
    if label.verdict == "undecidable":
        return Diagnosis(
            verdict="abstain",
            confidence=1.0,
            missing_signals=label.missing_signals,
            candidates=label.candidates,
        )
    findings = tuple(
        Finding(
            cause=fault.cause,
            locus=fault.locus,
            windows=fault.windows,
            confidence=1.0,
            lost_fraction=min(1.0, max(0.0, fault.lost_fraction.value)),
        )
        for fault in label.faults[:MAX_ROOTS]
    )
    return Diagnosis(verdict=label.verdict, findings=findings, confidence=1.0)
