"""The row of one finding: what it says, what it was judged to be, and how far it is right."""

from __future__ import annotations

from collections.abc import Sequence

from scorers.inputs import Label, Response
from scorers.levels import RIGHT, Flags
from scorers.lineage import Lineage
from scorers.settling import Judgement

FINDING_COLUMNS = [
    "case_id",
    "group",
    "split",
    "verdict",
    "cause",
    "domain",
    "role",
    "confidence",
    "status",
    "kind",
    "supported",
    *RIGHT,
]


def finding_rows(
    label: Label,
    response: Response,
    judgement: Judgement,
    said: Sequence[Flags],
    tree: Lineage,
) -> list[tuple[object, ...]]:
    """Return the values of FINDING_COLUMNS for each finding.

    Args:
        label: What is true.
        response: What came back.
        judgement: Of all findings.
        said: For each finding at which levels it is right.
        tree: The tree of causes.
    """
    supported = response.supported or (None,) * len(response.findings)
    return [
        (
            label.case_id,
            label.group,
            label.split,
            label.verdict,
            finding.cause,
            tree.path(finding.cause)[0],
            finding.role,
            finding.confidence,
            judgement.statuses[i],
            judgement.kinds[i],
            supported[i],
            *said[i],
        )
        for i, finding in enumerate(response.findings)
    ]
