"""Draws verdict and cause as often as the train split holds them.

The draw depends on the seed and on what the case measured, never on its id or on the order
of cases, so that the same case gets the same answer in every run.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cases.case import Case
from cases.digest import table_digest
from cases.schema import JOB, Diagnosis, Finding
from harness.diagnosers.prior import Prior


def diagnose(case: Case, settings: Prior) -> Diagnosis:
    """Draw one answer; an undecidable case of the train split counts as an abstention."""
    rng = np.random.default_rng([settings["seed"], content_number(case)])
    causes, verdicts = settings["causes"], settings["verdicts"]
    verdict = str(rng.choice(list(verdicts), p=_shares(verdicts)))
    if verdict == "healthy":
        share = verdicts["healthy"] / sum(verdicts.values())
        return Diagnosis(verdict="healthy", confidence=share)
    if verdict == "undecidable" or not causes:
        return Diagnosis(verdict="abstain", confidence=0.0)
    drawn = int(rng.choice(len(causes), p=_shares(causes)))
    share = _shares(causes)[drawn]
    finding = Finding(cause=list(causes)[drawn], locus=JOB, confidence=share)
    return Diagnosis(verdict="faulty", findings=(finding,), confidence=share)


def content_number(case: Case) -> int:
    """Return 64 bits that depend on the case's own measurements alone."""
    info = case.info.model_dump_json(exclude={"id"})
    digest = hashlib.sha256(info.encode())
    for table in ("steps", "requests", "jobs"):
        digest.update(table_digest(table, case.arrow(table)).encode())
    return int.from_bytes(digest.digest()[:8], "big")


def _shares(counts: dict[str, int]) -> list[float]:
    total = sum(counts.values())
    return [number / total for number in counts.values()]
