"""Fleets: which segment's jobs became slower than jobs alike, and by which part of a step."""

from __future__ import annotations

from cases.case import Case
from cases.schema import Diagnosis


def diagnose_fleet(case: Case) -> Diagnosis:
    """Abstain until fleets are known."""
    return Diagnosis(verdict="abstain", confidence=0.3)
