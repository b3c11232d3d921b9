"""Running a witness: is a query true of a case?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from cases.case import Case


def holds(case: Case, sql: str) -> bool:
    """Whether the first value of the query's answer is neither null nor zero.

    No row counts as false. Raises QueryError if the query does not run.
    """
    answer = case.sql(sql, limit=1)
    value: Any = answer.iloc[0, 0] if answer.size else None
    return bool(pd.notna(value)) and bool(value)
