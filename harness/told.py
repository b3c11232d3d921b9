"""One answer beside the truth: what was true, what was blamed, and how each was judged."""

from __future__ import annotations

from typing import Any

from cases.schema import SCOPE_FIELDS, Locus
from harness.results import Answer
from scorers import Label, Tree
from scorers.inputs import check
from scorers.lineage import Lineage
from scorers.tables import build

RIGHT = ("found", "quiet", "abstained_informed")


def said(answer: Answer) -> dict[str, Any]:
    """Return what was answered about a case that nobody labelled, as a JSON document.

    Returns:
        case, outcome, answered, blamed (cause, place, confidence), error, text.
    """
    diagnosis = answer.diagnosis
    findings = diagnosis.findings if diagnosis else ()
    blamed = [
        {"cause": f.cause, "place": place(f.locus), "confidence": f.confidence} for f in findings
    ]
    words = [f"{b['cause']} at {b['place']} ({b['confidence']:.2f})" for b in blamed]
    told_of = ", ".join(words) or (diagnosis.verdict if diagnosis else answer.outcome)
    return {
        "format": "evalharness.said/1.0",
        "case": answer.case,
        "outcome": answer.outcome,
        "answered": diagnosis.verdict if diagnosis else None,
        "blamed": blamed,
        "error": answer.error,
        "text": f"{answer.case}  no label\n  blamed: {told_of}",
    }


def told(answer: Answer, label: Label, taxonomy: Tree) -> dict[str, Any]:
    """Judge one answer and return all that its author wants to see, as a JSON document.

    Returns:
        case, split, verdict, outcome, bucket, right (whether nothing is left to wish), true (its
        faults), candidates and missing_signals (of an undecidable case), answered, blamed (its
        findings with their status), error, text (all this in three lines).
    """
    response = check(answer.response(), Lineage.of(taxonomy))
    tables = build([label], {label.case_id: response}, taxonomy)
    bucket = str(tables.cases["bucket"].iloc[0])
    found = [str(bucket) for bucket in tables.faults["bucket"]]
    statuses = tables.findings[["status", "kind"]].to_dict(orient="records")
    document = {
        "format": "evalharness.told/1.0",
        "case": label.case_id,
        "split": label.split,
        "verdict": label.verdict,
        "outcome": response.outcome,
        "bucket": bucket,
        "right": bucket in RIGHT,
        "true": [
            {
                "cause": fault.cause,
                "place": place(fault.locus),
                "lost_fraction": fault.lost_fraction.value,
                "bucket": own,
            }
            for fault, own in zip(label.faults, found or [""] * len(label.faults), strict=True)
        ],
        "candidates": list(label.candidates),
        "missing_signals": list(label.missing_signals),
        "answered": response.diagnosis.verdict if response.diagnosis else None,
        "blamed": [
            {
                "cause": finding.cause,
                "place": place(finding.locus),
                "confidence": finding.confidence,
                "status": status["status"],
                "kind": status["kind"] if isinstance(status["kind"], str) else None,
            }
            for finding, status in zip(response.findings, statuses, strict=True)
        ],
        "error": answer.error,
    }
    return {**document, "text": _text(document)}


def _text(document: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"{document['case']} ({document['split']}): {document['bucket']}",
            f"  true:   {_true(document)}",
            f"  blamed: {_blamed(document)}",
        ]
    )


def _true(document: dict[str, Any]) -> str:
    faults = [
        f"{fault['cause']} at {fault['place']}, costing {fault['lost_fraction']:.0%} of the time"
        for fault in document["true"]
    ]
    if document["verdict"] == "undecidable":
        missing = ", ".join(document["missing_signals"]) or "nothing"
        candidates = " or ".join(document["candidates"])
        return f"undecidable ({candidates}) without {missing}"
    return "; ".join(faults) or "healthy"


def _blamed(document: dict[str, Any]) -> str:
    if document["answered"] is None:
        last = (document["error"] or "").strip().splitlines()[-1:]
        return f"nothing: {document['outcome']}" + "".join(f" ({line})" for line in last)
    if not document["blamed"]:
        return f"nothing: {document['answered']}"
    return "; ".join(
        f"{one['cause']} at {one['place']} (confidence {one['confidence']:.2f}): {_judged(one)}"
        for one in document["blamed"]
    )


def _judged(one: dict[str, Any]) -> str:
    return f"{one['status']}, {one['kind']}" if one["kind"] else str(one["status"])


def place(locus: Locus | None) -> str:
    """Name a place, such as `rank 1`.

    >>> place(Locus(scope="rank", ranks=(1,))), place(Locus(scope="job"))
    ('rank 1', 'job')
    """
    if locus is None:
        return "no place"
    names = getattr(locus, SCOPE_FIELDS.get(locus.scope, ""), ())
    return " ".join([locus.scope, *map(str, names)])
