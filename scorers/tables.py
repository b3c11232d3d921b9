"""The three tables of outcomes: one row per case, per fault and per finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scorers.case_rows import CASE_COLUMNS, case_row
from scorers.fault_rows import FAULT_COLUMNS, fault_rows
from scorers.finding_rows import FINDING_COLUMNS, finding_rows
from scorers.inputs import Label, Response, Tree
from scorers.intervals import Codes
from scorers.judging import judge
from scorers.levels import levels
from scorers.lineage import Lineage

Row = tuple[object, ...]
# What rows of faults and findings say of their case; of faults the verdict goes without saying.
IDENTITY = ["case_id", "group", "split", "verdict"]


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
    cases: list[Row] = []
    faults: list[Row] = []
    findings: list[Row] = []
    counts: list[tuple[int, int]] = []
    for label in labels:
        response = responses[label.case_id]
        own = label.faults if label.verdict == "faulty" else ()
        judgement = judge(response.findings, label, tree)
        said, named = levels(response.findings, own, judgement, tree)
        cases.append(case_row(label, response, judgement, named, said, tree))
        faults += fault_rows(label, response, judgement, named, tree)
        findings += finding_rows(response, judgement, said, tree)
        counts.append((len(own), len(said)))
    frame = pd.DataFrame(cases, columns=CASE_COLUMNS)
    per_case = np.array(counts, dtype=np.intp).reshape(-1, 2)
    return Tables(
        frame,
        _beside(frame[IDENTITY[:-1]], per_case[:, 0], pd.DataFrame(faults, columns=FAULT_COLUMNS)),
        _beside(frame[IDENTITY], per_case[:, 1], pd.DataFrame(findings, columns=FINDING_COLUMNS)),
    )


def _beside(identity: pd.DataFrame, counts: Codes, rows: pd.DataFrame) -> pd.DataFrame:
    """Put before each row what its case is, given how many rows each case has."""
    cases = np.repeat(np.arange(len(identity)), counts)
    return pd.concat([identity.take(cases).reset_index(drop=True), rows], axis=1)
