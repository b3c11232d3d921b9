"""Building single columns of `trace_events` from lists of values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from cases.kineto.layout import NONE

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

STEP = re.compile(r"ProfilerStep#(\d+)")
INT64 = range(-(2**63), 2**63)


class Codes(dict[Any, int]):
    """Numbers values in order of appearance: `codes[value]` is always there."""

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self)
        return code


def text_column(
    values: Codes, numbers: Sequence[int], rename: Mapping[str, str] | None = None
) -> pd.Categorical:
    """A categorical of the `values` that `numbers` stand for, as (renamed) text.

    Categories are sorted; the value None becomes null.

    >>> text_column(Codes({7: 0, "7": 1, None: 2, "a": 3}), [0, 1, 2, 3, 3]).codes.tolist()
    [0, 0, -1, 1, 1]
    """
    names = rename or {}
    texts = [None if value is None else names.get(str(value), str(value)) for value in values]
    categories = sorted({text for text in texts if text is not None})
    place = {text: i for i, text in enumerate(categories)}
    final = np.array([-1 if text is None else place[text] for text in texts], np.int32)
    codes = final[np.array(numbers, np.int64)]
    return pd.Categorical.from_codes(codes, pd.Index(categories, dtype="str"), validate=False)


def whole_numbers(values: list[int | str | None]) -> Ints:
    """One column of numbers, with NONE for what is no whole number.

    >>> whole_numbers([7, "128", None, NONE]).tolist() == [7, 128, NONE, NONE]
    True
    """
    try:
        return np.array(values, np.int64)
    except (TypeError, ValueError, OverflowError):  # null, a handle like "0x0", or too large
        return np.array([whole_number(value) for value in values], np.int64)


def whole_number(value: int | str | None) -> int:
    """A whole number written as such or in decimal digits; NONE for anything else.

    >>> whole_number("128"), whole_number("0x0") == NONE
    (128, True)
    """
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"-?\d{1,18}", value, re.ASCII) else None
    return NONE if value is None or value not in INT64 else value


def nullable(values: Ints) -> pd.arrays.IntegerArray:
    """An Int64 column from numbers with NONE for null."""
    return pd.arrays.IntegerArray(values, values == NONE)


def nanoseconds(microseconds: Floats) -> Ints:
    """Nearest ns of times in us; exact for 3 decimals below 2**43 us, whole us below 2**53.

    >>> nanoseconds(np.array([5219573234634.123, -0.5])).tolist()
    [5219573234634123, -500]
    """
    whole = np.floor(microseconds)
    rest = np.rint((microseconds - whole) * 1000)
    return whole.astype(np.int64) * 1000 + rest.astype(np.int64)


def step_numbers(names: pd.Categorical) -> Ints:
    """N for the rows named ProfilerStep#N, NONE for all others."""
    matches = [STEP.fullmatch(str(name)) for name in names.categories]
    steps = np.array([int(match[1]) if match else NONE for match in matches], np.int64)
    column: Ints = steps[names.codes]
    return column


def sparse_text(rows: Sequence[int], values: Sequence[str | None], size: int) -> pd.Categorical:
    """A categorical of `size` rows with `values` at `rows` and null elsewhere."""
    texts = Codes()
    found = text_column(texts, [texts[value] for value in values])
    codes = np.full(size, -1, np.int32)
    codes[list(rows)] = found.codes
    return pd.Categorical.from_codes(codes, found.categories, validate=False)
