"""Whether an answer may be handed in: its form, its names, and the numbers that it cites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from cases.documents import record_error
from cases.errors import QueryError
from cases.schema import Diagnosis, Evidence, Finding, parse_diagnosis
from cases.taxonomy import Taxonomy

MAX_TOLERANCE = 0.05  # the most that evidence may be off when it is checked, whatever it claims
MOST_EVIDENCE = 10
MOST_PROBLEMS = 10
Read = Callable[[str], dict[str, Any]]


def problems(answer: Any, read: Read) -> tuple[Diagnosis | None, list[str]]:
    """Say what is wrong with an answer.

    Args:
        answer: As it came, a JSON value.
        read: Reads the one number of a query: status, value and why.

    Returns:
        The diagnosis if its form is right, and a sentence for each rule that it breaks.
    """
    try:
        diagnosis, _ = parse_diagnosis(answer)
    except ValidationError as error:
        return None, [str(record_error(error, "diagnosis"))]
    found = [*_unknown_names(diagnosis)]
    for number, finding in enumerate(diagnosis.findings):
        found += _uncited(f"findings.{number}", finding, read)
    return diagnosis, found[:MOST_PROBLEMS]


def _unknown_names(diagnosis: Diagnosis) -> Iterator[str]:
    known = set(Taxonomy.load().nodes)
    blamed = [finding.cause for finding in diagnosis.findings]
    blamed += [finding.caused_by for finding in diagnosis.findings if finding.caused_by]
    for name in (*blamed, *diagnosis.candidates):
        if name not in known:
            yield f"cause must be a name that the tool taxonomy lists, found {name!r}"


def _uncited(where: str, finding: Finding, read: Read) -> Iterator[str]:
    if not finding.evidence:
        yield f"{where}: must cite evidence: a query, and the number that it gives"
    if len(finding.evidence) > MOST_EVIDENCE:
        must = f"must cite at most {MOST_EVIDENCE} pieces of evidence"
        yield f"{where}: {must}, found {len(finding.evidence)}"
        return
    for number, claim in enumerate(finding.evidence):
        if wrong := _untrue(claim, read):
            yield f"{where}.evidence.{number}: {wrong}"


def _untrue(claim: Evidence, read: Read) -> str:
    try:
        reading = read(claim.sql)
    except QueryError as error:
        return str(error)
    if reading["status"] != "ok":
        return f"{reading['status']}: {reading['why']}"
    if holds(claim, reading["value"]):
        return ""
    value = "no number" if reading["value"] is None else f"{reading['value']:.6g}"
    return f"the query must give the number that is claimed, {claim.value:g}, and gives {value}"


def holds(claim: Evidence, found: float | None) -> bool:
    """Tell whether a query's number bears out a claim, by the rule that evidence is judged by.

    >>> holds(Evidence(sql="SELECT 1", value=100.0), 104.0)
    True
    """
    if found is None:
        return False
    return abs(found - claim.value) <= min(claim.tolerance, MAX_TOLERANCE) * abs(claim.value)
