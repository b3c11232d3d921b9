"""A case's tables as JSON values, for tools that are given numbers rather than files."""

from __future__ import annotations

from typing import Any

import pandas as pd

Row = dict[str, Any]


def rows(frame: pd.DataFrame, columns: tuple[str, ...], known: tuple[str, ...] = ()) -> list[Row]:
    """Return the rows of a table as plain values, null where nothing was measured.

    Args:
        frame: One of a case's tables.
        columns: The columns to keep.
        known: Columns without whose value a row says nothing; such rows are left out.

    >>> rows(pd.DataFrame({"rank": [0, 1], "step": [5, None]}), ("rank", "step"))
    [{'rank': 0, 'step': 5.0}, {'rank': 1, 'step': None}]
    """
    chosen = frame.dropna(subset=list(known))[list(columns)].astype(object)
    records = chosen.where(chosen.notna(), None).to_dict("records")
    return [{str(name): value for name, value in record.items()} for record in records]
