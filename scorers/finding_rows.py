"""The row of one finding: what it says, what it was judged to be, and how far it is right."""

from __future__ import annotations

from collections.abc import Sequence

from scorers.inputs import Response
from scorers.levels import RIGHT, Flags
from scorers.lineage import Lineage
from scorers.settling import Judgement

FINDING_COLUMNS = [
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
    response: Response,
    judgement: Judgement,
    said: Sequence[Flags],
    tree: Lineage,
) -> list[tuple[object, ...]]:
    """Return the values of FINDING_COLUMNS for each finding.

    Args:
        response: What came back.
        judgement: Of all findings.
        said: For each finding at which levels it is right.
        tree: The tree of causes.
    """
    supported = response.supported or (None,) * len(response.findings)
    return [
        (
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
