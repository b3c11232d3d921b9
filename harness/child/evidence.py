"""Reading one number off a case with a query that a diagnoser cites."""

from __future__ import annotations

import math
import os
import time
from decimal import Decimal
from typing import Any, Literal

import duckdb
import numpy as np
import pandas as pd

from cases.case import Case, Recording
from cases.errors import QueryError
from cases.sql import SETTINGS, Database
from harness.child.query_rules import RefusedError, check_query

ZONE = "UTC"  # of times with a zone: a number must not hang on where the machine stands


def read(case: Case, sql: str, of: Literal["run", "reference"]) -> dict[str, Any]:
    """Run one cited query.

    Args:
        case: The case, its labels out of reach.
        sql: The query.
        of: Whose tables it sees: the run's, or those of the reference run in its place.

    Returns:
        `status` (ok, refused, failed or out_of_memory), `value` (a finite number, else None)
        and `why` (empty if ok).
    """
    os.environ["TZ"] = ZONE
    time.tzset()
    try:
        with duckdb.connect(":memory:", config=SETTINGS) as connection:
            check_query(connection, sql)
        value = _number(_database(case, of).query(sql, limit=1))
        return {"status": "ok", "value": value, "why": ""}
    except RefusedError as error:
        return {"status": "refused", "value": None, "why": str(error)}
    except (QueryError, duckdb.Error) as error:
        why = " ".join(str(error).split())
        full = isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in why
        return {"status": "out_of_memory" if full else "failed", "value": None, "why": why}


def _database(case: Case, of: Literal["run", "reference"]) -> Database:
    run: Recording | None = case if of == "run" else case.reference
    if run is None:
        raise QueryError("must be a case with a reference run", where="evidence")
    return Database(run, case.reference)


def _number(answer: pd.DataFrame) -> float | None:
    """Return the only value of an answer; None if there is no row, or it is null or not finite."""
    if answer.shape[1] != 1:
        raise QueryError("must give one column", where="sql", found=answer.shape[1])
    if answer.empty:
        return None
    value: Any = answer.iloc[0, 0]
    if value is None or value is pd.NA:
        return None
    if not isinstance(value, int | float | Decimal | bool | np.number | np.bool_):
        raise QueryError("must give a number", where="sql", found=type(value).__name__)
    number = float(value)
    return number if math.isfinite(number) else None
