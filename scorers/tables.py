"""The three tables of outcomes: one row per case, per fault and per finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cases.schema import Fault, Finding
from scorers.benefit import benefits
from scorers.buckets import case_bucket, unanswered_bucket
from scorers.inputs import Label, Response, Tree
from scorers.judging import Judgement, judge
from scorers.levels import LEVELS, credited, finding_levels
from scorers.ranking import accuracy_at, first_rank, reciprocal_rank
from scorers.windows import overlap

Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """Rows of cases, faults and findings; joined by `case_id`."""

    cases: pd.DataFrame
    faults: pd.DataFrame
    findings: pd.DataFrame

    def applicable(self) -> Tables:
        """Return the rows of cases that the diagnoser did not declare unsupported."""
        kept = self.cases.loc[self.cases["outcome"] != "unsupported"]
        ids = set(kept["case_id"])
        return Tables(
            kept,
            self.faults.loc[self.faults["case_id"].isin(ids)],
            self.findings.loc[self.findings["case_id"].isin(ids)],
        )


def build(labels: Sequence[Label], responses: Mapping[str, Response], taxonomy: Tree) -> Tables:
    """Judge every case; `responses` must hold one valid answer for each label."""
    cases: list[Row] = []
    faults: list[Row] = []
    findings: list[Row] = []
    for label in labels:
        response = responses[label.case_id]
        judgement = judge(response.findings, label, taxonomy)
        own_faults = _fault_rows(label, response, judgement, taxonomy)
        own_findings = _finding_rows(label, response, judgement, taxonomy)
        faults += own_faults
        findings += own_findings
        cases.append(
            _case_row(label, response, judgement)
            | _counts(own_faults, own_findings)
            | benefits(label, response.findings, judgement, taxonomy)
        )
    return Tables(
        pd.DataFrame(cases),
        pd.DataFrame(faults, columns=FAULT_COLUMNS),
        pd.DataFrame(findings, columns=FINDING_COLUMNS),
    )


# --- cases ---------------------------------------------------------------------------------


def _case_row(label: Label, response: Response, judgement: Judgement) -> Row:
    answered = response.diagnosis is not None and response.diagnosis.verdict != "abstain"
    return {
        "case_id": label.case_id,
        "group": label.group,
        "split": label.split,
        "verdict": label.verdict,
        "kind": label.kind,
        "backend": label.backend,
        "question": label.question,
        "outcome": response.outcome,
        "seconds": response.seconds,
        "bucket": case_bucket(label, response, judgement),
        "answered": answered,
        "misled": judgement.misled,
    } | _ranks(label, response.findings, judgement)


def _ranks(label: Label, findings: Sequence[Finding], judgement: Judgement) -> Row:
    """Ranking figures of a faulty case; NaN for others, 0 where nothing is right."""
    if label.verdict != "faulty":
        return dict.fromkeys(("top1", "top1_wrong", "ac_at_3", "mrr"), float("nan"))
    roots = [i for i, finding in enumerate(findings) if finding.role == "root"]
    place = {i: position for position, i in enumerate(roots)}
    confidences = [findings[i].confidence for i in roots]
    by_fault = [first_rank(confidences, {place[i] for i in right}) for right in judgement.credits]
    right = first_rank(confidences, {place[i] for i in set().union(*judgement.credits)})
    top = [i for i in roots if findings[i].confidence == max(confidences)]
    wrong = sum(judgement.statuses[i] == "false" for i in top)
    return {
        "top1": right[0] if right else 0.0,
        "top1_wrong": wrong / len(top) if top else 0.0,
        "ac_at_3": accuracy_at(3, by_fault),
        "mrr": reciprocal_rank(right),
    }


def _counts(faults: Sequence[Row], findings: Sequence[Row]) -> Row:
    """Sums per case that the ratios over faults and findings are made of."""
    row: Row = {"n_faults": len(faults)}
    for level in LEVELS:
        column = f"right_{level}"
        judged = [finding[column] for finding in findings if finding[column] is not None]
        row[f"found_{level}"] = sum(fault[column] for fault in faults)
        row[f"true_{level}"] = sum(judged)
        row[f"false_{level}"] = len(judged) - sum(judged)
    return row


# --- faults and findings -------------------------------------------------------------------

FAULT_COLUMNS = [
    "case_id",
    "group",
    "split",
    "cause",
    "domain",
    "mechanism",
    "bucket",
    "kind",
    "blamed",
    "lost_fraction",
    "predicted_lost_fraction",
    "window_iou",
    *(f"right_{level}" for level in LEVELS),
]


def _fault_rows(
    label: Label, response: Response, judgement: Judgement, taxonomy: Tree
) -> list[Row]:
    if label.verdict != "faulty":
        return []
    unanswered = unanswered_bucket(response)
    right = credited(response.findings, label.faults, judgement.buckets, taxonomy)
    predicted = _predictions(response.findings, judgement)
    rows = []
    for j, fault in enumerate(label.faults):
        i, bucket = judgement.blamed[j], judgement.buckets[j]
        rows.append(
            _identity(label)
            | _place_in_tree(fault, taxonomy)
            | {
                "bucket": unanswered or bucket,
                "kind": None if i is None or bucket != "misattributed" else judgement.kinds[i],
                "blamed": None if i is None else response.findings[i].cause,
                "lost_fraction": fault.lost_fraction.value,
                "predicted_lost_fraction": predicted[j],
                "window_iou": _window_iou(fault, response.findings, judgement, j),
            }
            | {f"right_{level}": right[level][j] for level in LEVELS}
        )
    return rows


def _identity(label: Label) -> Row:
    return {"case_id": label.case_id, "group": label.group, "split": label.split}


def _place_in_tree(fault: Fault, taxonomy: Tree) -> Row:
    mechanism, domain = taxonomy.ancestors(fault.cause)
    return {"cause": fault.cause, "domain": domain, "mechanism": mechanism}


def _predictions(findings: Sequence[Finding], judgement: Judgement) -> list[float]:
    """Share of time that the answer gives each fault: 0 unless found.

    A finding that is right for several faults gives each an equal part.
    """
    times = [sum(i in right for right in judgement.credits) for i in range(len(findings))]
    return [
        sum(
            (findings[i].lost_fraction or 0.0) / times[i]
            for i in sorted(right)
            if judgement.statuses[i] == "true"
        )
        for right in judgement.credits
    ]


def _window_iou(
    fault: Fault, findings: Sequence[Finding], judgement: Judgement, j: int
) -> float | None:
    """Overlap with the windows of the answers right for a fault; None if it has no windows."""
    if not fault.windows:
        return None
    return overlap([w for i in judgement.credits[j] for w in findings[i].windows], fault.windows)


FINDING_COLUMNS = [
    "case_id",
    "group",
    "split",
    "verdict",
    "cause",
    "role",
    "confidence",
    "status",
    "kind",
    *(f"right_{level}" for level in LEVELS),
]


def _finding_rows(
    label: Label, response: Response, judgement: Judgement, taxonomy: Tree
) -> list[Row]:
    faults = label.faults if label.verdict == "faulty" else ()
    return [
        _identity(label)
        | {"verdict": label.verdict}
        | {"cause": finding.cause, "role": finding.role, "confidence": finding.confidence}
        | {"status": judgement.statuses[i], "kind": judgement.kinds[i]}
        | finding_levels(finding, judgement.statuses[i], faults, taxonomy)
        for i, finding in enumerate(response.findings)
    ]
