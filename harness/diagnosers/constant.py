"""Blames the commonest cause of the train split in every case, the whole job its place."""

from __future__ import annotations

from cases.case import Case
from cases.schema import JOB, Diagnosis, Finding
from harness.diagnosers.prior import Prior


def diagnose(case: Case, settings: Prior) -> Diagnosis:
    """Answer the same whatever the case is; abstain where the train split has no fault."""
    causes, verdicts = settings["causes"], settings["verdicts"]
    if not causes:
        return Diagnosis(verdict="abstain", confidence=0.0)
    cause = next(iter(causes))
    share = causes[cause] / max(1, sum(causes.values()))
    confidence = share * verdicts["faulty"] / max(1, sum(verdicts.values()))
    finding = Finding(cause=cause, locus=JOB, confidence=confidence)
    return Diagnosis(verdict="faulty", findings=(finding,), confidence=confidence)
