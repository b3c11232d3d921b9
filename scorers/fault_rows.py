"""The row of one fault: what it is, which bucket it is in, and what was said about it."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Fault, Finding
from scorers.buckets import unanswered_bucket
from scorers.inputs import Label, Response
from scorers.levels import RIGHT, Flags
from scorers.lineage import Lineage
from scorers.settling import Judgement
from scorers.windows import onset_error, overlap

FAULT_COLUMNS = [
    "cause",
    "domain",
    "mechanism",
    "bucket",
    "kind",
    "blamed",
    "lost_fraction",
    "predicted_lost_fraction",
    "window_iou",
    "onset_error",
    *RIGHT,
]


def fault_rows(
    label: Label,
    response: Response,
    judgement: Judgement,
    named: Sequence[Flags],
    tree: Lineage,
) -> list[tuple[object, ...]]:
    """Return the values of FAULT_COLUMNS for each fault of a faulty case.

    Args:
        label: What is true.
        response: What came back.
        judgement: Of all findings.
        named: For each fault at which levels it was named.
        tree: The tree of causes.
    """
    if label.verdict != "faulty":
        return []
    findings, unanswered = response.findings, unanswered_bucket(response)
    rows: list[tuple[object, ...]] = []
    for j, fault in enumerate(label.faults):
        domain, mechanism = tree.path(fault.cause)[:2]
        i, bucket = judgement.blamed[j], judgement.buckets[j]
        rows.append(
            (
                fault.cause,
                domain,
                mechanism,
                unanswered or bucket,
                None if i is None or bucket != "misattributed" else judgement.kinds[i],
                None if i is None else findings[i].cause,
                fault.lost_fraction.value,
                _predicted(findings, judgement, j),
                *_when(fault, findings, judgement.credits[j], label.duration_ns),
                *named[j],
            )
        )
    return rows


def _predicted(findings: Sequence[Finding], judgement: Judgement, j: int) -> float:
    """Return the share of time that the answer gives a fault: 0 unless found.

    A finding that is right for several faults gives each an equal part.
    """
    times = {i: sum(i in right for right in judgement.credits) for i in judgement.credits[j]}
    return sum(
        (findings[i].lost_fraction or 0.0) / times[i]
        for i in sorted(times)
        if judgement.statuses[i] == "true"
    )


def _when(
    fault: Fault, findings: Sequence[Finding], right: set[int], duration_ns: int | None
) -> tuple[float | None, float | None]:
    """Return overlap and onset error of what was said; None for a fault without windows."""
    if not fault.windows:
        return None, None
    said = [window for i in sorted(right) for window in findings[i].windows]
    return overlap(said, fault.windows), onset_error(said, fault.windows, duration_ns)
