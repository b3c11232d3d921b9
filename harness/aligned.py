"""A plain-text table: aligned columns, nothing cut, fit for a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a head line; None becomes an empty cell.

    >>> print(aligned(["id", "ranks"], [["ab", 2], ["c", None]]))
    id  ranks
    ab  2
    c
    """
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
