"""The three tables of outcomes: one row per case, per fault and per finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from scorers.case_rows import CASE_COLUMNS, case_row
from scorers.fault_rows import FAULT_COLUMNS, fault_rows
from scorers.finding_rows import FINDING_COLUMNS, finding_rows
from scorers.inputs import Label, Response, Tree
from scorers.judging import judge
from scorers.levels import credited, finding_levels
from scorers.lineage import Lineage


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
    tree = Lineage.of(taxonomy)
    # Tuples, not dictionaries: a hundred thousand cases must fit into memory.
    cases: list[tuple[object, ...]] = []
    faults: list[tuple[object, ...]] = []
    findings: list[tuple[object, ...]] = []
    for label in labels:
        response = responses[label.case_id]
        own = label.faults if label.verdict == "faulty" else ()
        judgement = judge(response.findings, label, tree)
        named = credited(response.findings, own, judgement.buckets, tree)
        right = [tree.relations(fault) for fault in own]
        said = finding_levels(response.findings, judgement.statuses, right, tree)
        cases.append(case_row(label, response, judgement, named, said, tree))
        faults += fault_rows(label, response, judgement, named, tree)
        findings += finding_rows(label, response, judgement, said, tree)
    return Tables(
        pd.DataFrame(cases, columns=CASE_COLUMNS),
        pd.DataFrame(faults, columns=FAULT_COLUMNS),
        pd.DataFrame(findings, columns=FINDING_COLUMNS),
    )
