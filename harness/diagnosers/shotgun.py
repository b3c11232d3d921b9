"""Blames the commonest causes of the train split all at once, as many as an answer may hold."""

from __future__ import annotations

from cases.case import Case
from cases.schema import JOB, MAX_ROOTS, Diagnosis, Finding
from harness.diagnosers.prior import Prior


def diagnose(case: Case, settings: Prior) -> Diagnosis:
    """Answer the same whatever the case is; abstain where the train split has no fault.

    It states no confidence, as one who lists everything does, and so stands by all it lists.
    """
    findings = tuple(
        Finding(cause=cause, locus=JOB) for cause in list(settings["causes"])[:MAX_ROOTS]
    )
    if not findings:
        return Diagnosis(verdict="abstain", confidence=0.0)
    return Diagnosis(verdict="faulty", findings=findings)
