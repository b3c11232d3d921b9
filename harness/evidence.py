"""What became of the evidence that findings cite: one line a claim in evidence.jsonl.

A claim is a query and the number that it is said to give on one case. What it was checked
against, and under which limits, is its `setup`: another one asks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from cases.documents import canonical_json
from cases.schema import Evidence, Finding, Record
from harness.results import Answer, append_line, read_lines
from scorers.evidence import is_true

EVIDENCE = "evidence.jsonl"
# An answer may cite as much as it likes; only so many pieces a case are looked at.
MOST_PER_CASE = 50

Status = Literal["ok", "refused", "failed", "timeout", "out_of_memory"]
Ruling = Literal[
    "supported",
    "not_true",
    "also_on_twin",
    "unknown",
    "refused",
    "failed",
    "timeout",
    "out_of_memory",
]
# What a claim must not be true of as well.
Against = Literal["twin", "reference", "itself", "nothing"]


class Reading(Record):
    """What one query gave on one run: a finite number or none, and why it gave nothing."""

    status: Status
    value: float | None = None
    why: str = ""


class Checked(Record):
    """One claim and its ruling.

    `here` and `there` are the numbers found on the case and on what it was held against, None
    where there was no number or nobody had to look.
    """

    format: str = "evalharness.evidence/1.0"
    case: str
    claim: str
    setup: str
    ruling: Ruling
    here: float | None = None
    there: float | None = None
    against: Against = "twin"
    why: str = ""
    seconds: float = 0.0
    sealed: bool = False


def claim_key(case_digest: str, claim: Evidence) -> str:
    """Return the digest of a case's content and what is claimed of it; `says` is left out."""
    parts = [case_digest, claim.sql, claim.value, claim.tolerance]
    return hashlib.sha256(canonical_json(parts)).hexdigest()


def claims_of(findings: tuple[Finding, ...]) -> Iterator[tuple[int, Evidence]]:
    """Yield (number of the finding, piece of evidence) in the order of the answer."""
    for number, finding in enumerate(findings):
        for claim in finding.evidence:
            yield number, claim


def rule(claim: Evidence, here: Reading, against: Against, there: Reading | None) -> Ruling:
    """Say whether a claim supports its finding.

    Args:
        claim: The claim.
        here: What its query gave on the case.
        against: What the claim must not be true of as well.
        there: What the query gave on that, None where nobody looked.

    >>> claim = Evidence(sql="SELECT count(*) FROM loader", value=10)
    >>> ten, two = Reading(status="ok", value=10), Reading(status="ok", value=2)
    >>> rule(claim, ten, "twin", two), rule(claim, ten, "twin", ten), rule(claim, two, "twin", None)
    ('supported', 'also_on_twin', 'not_true')
    """
    if here.status != "ok":
        return here.status
    if not is_true(claim, here.value):
        return "not_true"
    if against == "itself":
        return "also_on_twin"
    if against == "nothing" or there is None:
        return "unknown"
    if there.status != "ok":
        return there.status
    return "also_on_twin" if is_true(claim, there.value) else "supported"


def read_checked(folder: Path) -> dict[str, Checked] | None:
    """Read the last ruling on each claim of a results folder; None if nobody ever checked."""
    path = folder / EVIDENCE
    if not path.is_file():
        return None
    return {line.claim: line for line in read_lines(path, Checked)}


def append_checked(folder: Path, line: Checked) -> None:
    """Add one ruling."""
    append_line(folder / EVIDENCE, line, line.format)


def supported(
    answer: Answer, case_digest: str, checked: Mapping[str, Checked]
) -> tuple[bool | None, ...] | None:
    """Say of each finding of an answer whether a piece of its evidence is supported.

    None of a finding where nothing supports it and something could not be decided; None of all
    where a piece has not been checked.
    """
    findings = answer.diagnosis.findings if answer.diagnosis else ()
    flags: list[bool | None] = []
    for finding in findings:
        keys = [claim_key(case_digest, claim) for claim in finding.evidence]
        if any(key not in checked for key in keys):
            return None
        rulings = {checked[key].ruling for key in keys}
        flags.append(True if "supported" in rulings else None if "unknown" in rulings else False)
    return tuple(flags)
