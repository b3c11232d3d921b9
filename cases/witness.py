"""Running a witness: is a query true of a case? And of which cases must it not be?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cases.case import Case
from cases.taxonomy import Taxonomy
from cases.truth import Truth


def holds(case: Case, sql: str) -> bool:
    """Whether the first value of the query's answer is neither null nor zero.

    No row counts as false. Raises QueryError if the query does not run.
    """
    answer = case.sql(sql, limit=1)
    value: Any = answer.iloc[0, 0] if answer.size else None
    return bool(pd.notna(value)) and bool(value)


def rivals(truth: Truth, truths: Mapping[str, Truth], taxonomy: Taxonomy) -> list[str]:
    """Ids of the cases on which the witness of `truth` must not be true, its twin apart.

    These are the faulty cases whose causes are confused with its cause, and the decoys that
    look like it; cases whose causes it may be called by (`acceptable`) are none.
    """
    causes = {fault.cause for fault in truth.faults}
    allowed = causes.union(*(fault.acceptable for fault in truth.faults))
    confusable = {name for cause in causes for name in taxonomy.confusable(cause)} - allowed
    found = []
    for other_id, other in truths.items():
        there = {fault.cause for fault in other.faults}
        alike = {name for decoy in other.decoys for name in decoy.looks_like}
        rival = other.verdict == "faulty" and there & confusable and not there & allowed
        if rival or alike & causes:
            found.append(other_id)
    return sorted(found)
