"""The row of one case: what was asked, what came of it, and the sums that metrics are made of."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Finding
from scorers import benefit
from scorers.buckets import case_bucket
from scorers.forecasts import brier
from scorers.inputs import Label, Response
from scorers.levels import LEVELS, Flags
from scorers.lineage import Lineage
from scorers.ranking import accuracy_at, first_rank, reciprocal_rank
from scorers.settling import Judgement

RANKING = ("top1", "top1_wrong", "ac_at_3", "mrr")
UNRANKED = (float("nan"),) * len(RANKING)
NOTHING = (0.0,) * len(RANKING)
NONE = [0] * len(LEVELS)
CASE_COLUMNS = [
    "case_id",
    "group",
    "split",
    "verdict",
    "kind",
    "backend",
    "question",
    "outcome",
    "seconds",
    "bucket",
    "answered",
    "misled",
    "confidence",
    "brier",
    *RANKING,
    "n_faults",
    *(f"found_{level}" for level in LEVELS),
    *(f"true_{level}" for level in LEVELS),
    *(f"false_{level}" for level in LEVELS),
    *benefit.COLUMNS,
]


def case_row(
    label: Label,
    response: Response,
    judgement: Judgement,
    named: Sequence[Flags],
    said: Sequence[Flags],
    tree: Lineage,
) -> tuple[object, ...]:
    """Return the values of CASE_COLUMNS.

    Args:
        label: What is true.
        response: What came back.
        judgement: Of all findings.
        named: For each fault at which LEVELS it was named.
        said: For each finding at which LEVELS it is right.
        tree: The tree of causes.
    """
    diagnosis, findings = response.diagnosis, response.findings
    right, wrong = _count(said) if said else (NONE, NONE)
    return (
        label.case_id,
        label.group,
        label.split,
        label.verdict,
        label.kind,
        label.backend,
        label.question,
        response.outcome,
        response.seconds,
        case_bucket(label, response, judgement),
        diagnosis is not None and diagnosis.verdict != "abstain",
        judgement.misled,
        None if diagnosis is None else diagnosis.confidence,
        brier(findings, label, judgement),
        *(_ranks(findings, judgement) if label.verdict == "faulty" else UNRANKED),
        len(named),
        *(_count(named)[0] if named else NONE),
        *right,
        *wrong,
        *benefit.benefits(label, findings, judgement, tree),
    )


def _ranks(findings: Sequence[Finding], judgement: Judgement) -> tuple[float, ...]:
    """Return the values of RANKING of a faulty case; 0 where nothing is right."""
    roots = [i for i, finding in enumerate(findings) if finding.role == "root"]
    if not roots:
        return NOTHING
    surest = max(findings[i].confidence for i in roots)
    top = [i for i in roots if findings[i].confidence == surest]
    wrong = sum(judgement.statuses[i] == "false" for i in top) / len(top)
    credited = set().union(*judgement.credits)
    if not credited:
        return (0.0, wrong, 0.0, 0.0)
    place = {i: position for position, i in enumerate(roots)}
    confidences = [findings[i].confidence for i in roots]
    by_fault = [first_rank(confidences, {place[i] for i in right}) for right in judgement.credits]
    first = first_rank(confidences, {place[i] for i in credited})
    return first[0], wrong, accuracy_at(3, by_fault), reciprocal_rank(first)


def _count(rows: Sequence[Flags]) -> tuple[list[int], list[int]]:
    """Count at each of LEVELS how many rows are right, and how many are wrong."""
    levels = list(zip(*rows, strict=True))
    return [level.count(True) for level in levels], [level.count(False) for level in levels]
