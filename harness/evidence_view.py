"""The evidence of a result as figures and as a table, a row for each piece that a finding cites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.aligned import aligned
from harness.evidence import Checked, claim_key, claims_of, supported
from harness.results import Answer
from scorers import Response

HEADER = ("case", "finding", "says", "claimed", "here", "healthy", "ruling")
SAYS_CHARACTERS = 60


def checked_responses(
    answers: Mapping[str, Answer], digests: Mapping[str, str], checked: Mapping[str, Checked] | None
) -> dict[str, Response]:
    """Return what the scorers judge, with the findings' support if all evidence was checked.

    Args:
        answers: The answer to each case.
        digests: Digest of each case's content.
        checked: Rulings by claim, None if nobody ever checked.
    """
    flags = {case: supported(a, digests[case], checked or {}) for case, a in answers.items()}
    known = checked is not None and None not in flags.values()
    return {
        case: answer.response(flags[case] if known and answer.diagnosis else None)
        for case, answer in answers.items()
    }


def evidence_rows(
    answers: Mapping[str, Answer], digests: Mapping[str, str], checked: Mapping[str, Checked]
) -> Iterator[dict[str, Any]]:
    """Yield what became of each piece of evidence, and of each finding that cites none."""
    for case, answer in answers.items():
        findings = answer.diagnosis.findings if answer.diagnosis else ()
        for number, finding in enumerate(findings):
            if not finding.evidence:
                yield {"case": case, "finding": number, "cause": finding.cause, "ruling": "none"}
        for number, claim in claims_of(findings):
            line = checked.get(claim_key(digests[case], claim))
            yield {
                "case": case,
                "finding": number,
                "cause": findings[number].cause,
                "sql": claim.sql,
                "says": claim.says,
                "claimed": claim.value,
                "ruling": "unchecked" if line is None else line.ruling,
                "here": line.here if line else None,
                "there": line.there if line else None,
                "against": line.against if line else None,
                "why": line.why if line else "",
            }


def evidence_summary(rows: list[dict[str, Any]], checked: Mapping[str, Checked]) -> dict[str, Any]:
    """Count pieces of evidence by ruling, and say whether labels were out of the queries' reach."""
    counts = Counter(row["ruling"] for row in rows)
    return {
        "rulings": dict(sorted(counts.items())),
        "sealed": all(c.sealed for c in checked.values()),
    }


def render_evidence(diagnoser: str, rows: list[dict[str, Any]], sealed: bool) -> str:
    """Return a table of all evidence of one diagnoser, and how often each ruling was given."""
    counts = Counter(row["ruling"] for row in rows)
    told = ", ".join(f"{number} {ruling}" for ruling, number in sorted(counts.items()))
    note = "" if sealed else " (checked unsealed: queries ran in plain processes)"
    head = f"{diagnoser}: evidence: {told or 'no finding'}{note}"
    table = aligned(HEADER, [_cells(row) for row in rows])
    return f"{head}\n\n{table}" if rows else head


def _cells(row: Mapping[str, Any]) -> list[str]:
    says = row.get("says") or row.get("sql") or ""
    short = says if len(says) <= SAYS_CHARACTERS else says[: SAYS_CHARACTERS - 3] + "..."
    ruling = f"{row['ruling']}: {row['why']}" if row.get("why") else row["ruling"]
    numbers = [_number(row.get(name)) for name in ("claimed", "here", "there")]
    return [row["case"], row["cause"], short, *numbers, ruling[: 2 * SAYS_CHARACTERS]]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
