"""Rows of a table as text that a model can read: bounded, and the same on every machine."""

from __future__ import annotations

import csv
import io
from typing import Any

import pandas as pd

MOST_ROWS = 50
MOST_CELL_CHARACTERS = 300
MOST_CHARACTERS = 12_000


def as_text(frame: pd.DataFrame) -> str:
    """Return the first rows as CSV below their names, and how many there are.

    >>> as_text(pd.DataFrame({"rank": [0, 1], "ms": [1.25, None]}))
    'rank,ms\\n0,1.25\\n1,null\\n(2 rows)'
    """
    shown = frame.head(MOST_ROWS)
    cells = [[cell(value) for value in row] for row in shown.itertuples(index=False, name=None)]
    kept = [_line(row) for row in ([str(name) for name in frame.columns], *cells)]
    while len(kept) > 1 and sum(map(len, kept)) + len(kept) > MOST_CHARACTERS:
        kept.pop()
    left = f", the first {len(kept) - 1} shown" if len(kept) - 1 < len(frame) else ""
    count = f"({len(frame)} row{'s' * (len(frame) != 1)}{left})"
    return "\n".join([*kept, count])


def _line(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def cell(value: Any) -> str:
    """Return one value: six digits of a fraction, all of a whole number.

    >>> cell(1234567.0), cell(0.12345678), cell("a\\nb"), cell(float("nan"))
    ('1234567', '0.123457', 'a b', 'null')
    """
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "null"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else f"{value:.6g}"
    text = " ".join(str(value).split())
    return text if len(text) <= MOST_CELL_CHARACTERS else f"{text[: MOST_CELL_CHARACTERS - 3]}..."
