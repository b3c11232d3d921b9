"""A table's columns as plain arrays, and reductions of them by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Columns = dict[str, Floats]
MOST = 1000.0  # a ratio beyond it says no more


def floats_of(table: pa.Table, name: str) -> Floats:
    """A column of floats, NaN where not measured."""
    column: Any = table[name]
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def frame_of(table: pa.Table, names: Sequence[str]) -> pd.DataFrame:
    """Several columns of floats."""
    return pd.DataFrame({name: floats_of(table, name) for name in names})


def ints_of(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers, -1 where not measured."""
    column: Any = table[name]
    known: Any = pc.fill_null(column, -1)
    return np.asarray(known.to_numpy(), dtype=np.int64)


def codes_of(table: pa.Table, name: str) -> Ints:
    """A text column as numbers of its different values, -1 where there is none."""
    return texts_of(table, name)[0]


def texts_of(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """A text column as numbers, -1 where there is none, and the texts that they stand for."""
    encoded: Any = table[name].combine_chunks().dictionary_encode()
    codes: Any = pc.fill_null(encoded.indices, -1)
    return np.asarray(codes.to_numpy(), dtype=np.int64), encoded.dictionary.to_pylist()


def rows_with(table: pa.Table, name: str, text: str) -> pa.Table:
    """The rows in which a text column holds `text`."""
    column: Any = table[name]
    return table.filter(pc.equal(column, pa.scalar(text)))


def rows_where(table: pa.Table, flags: Flags) -> pa.Table:
    """The rows that are flagged."""
    return table.filter(pa.array(flags))


class Groups:
    """Rows put together in groups: each reduction of a column gives one number a group.

    What was not measured (NaN) is left out; a group in which nothing was has NaN.

    Args:
        index: The group of each row, counted from 0; a row below 0 belongs to none.
        number: How many groups there are.

    >>> groups = Groups(np.array([0, 0, 1, -1]), 3)
    >>> groups.mean(np.array([1.0, 2.0, 5.0, 9.0])).tolist()
    [1.5, 5.0, nan]
    >>> groups.quantile(np.array([1.0, 2.0, 5.0, 9.0]), 0.25).tolist()
    [1.25, 5.0, nan]
    """

    def __init__(self, index: Ints, number: int) -> None:
        self.index, self.number = index, number

    def _measured(self, values: Floats | Flags) -> tuple[Ints, Floats, Floats]:
        """Group and value of each row that counts, and how many of them a group has."""
        known = np.asarray(values, dtype=np.float64)
        kept = (self.index >= 0) & ~np.isnan(known)
        index = self.index[kept]
        count = np.bincount(index, minlength=self.number).astype(np.float64)
        count[count == 0] = np.nan
        return index, known[kept], count

    def rows(self) -> Floats:
        """Rows of each group, measured or not."""
        return self._measured(np.ones(len(self.index)))[2]

    def sum(self, values: Floats | Flags) -> Floats:
        """Sum of a column."""
        index, known, count = self._measured(values)
        return np.where(np.isnan(count), np.nan, np.bincount(index, known, self.number))

    def mean(self, values: Floats | Flags) -> Floats:
        """Mean of a column."""
        index, known, count = self._measured(values)
        return np.asarray(np.bincount(index, known, self.number) / count)

    def most(self, values: Floats) -> Floats:
        """Greatest value of a column."""
        index, known, count = self._measured(values)
        out = np.full(self.number, -np.inf)
        np.maximum.at(out, index, known)
        return np.where(np.isnan(count), np.nan, out)

    def least(self, values: Floats) -> Floats:
        """Least value of a column."""
        return -self.most(-values)

    def quantile(self, values: Floats, share: float) -> Floats:
        """The `share` quantile of a column, linear between neighbours."""
        index, known, count = self._measured(values)
        ordered = np.append(known[np.lexsort((known, index))], np.nan)
        size = np.nan_to_num(count).astype(np.int64)
        rank = share * np.maximum(size - 1, 0)
        lower = (np.cumsum(size) - size) + rank.astype(np.int64)
        at = ordered[lower]
        step = np.where(rank % 1 > 0, ordered[np.minimum(lower + 1, len(known))] - at, 0.0)
        return np.where(size > 0, at + step * (rank % 1), np.nan)

    def median(self, values: Floats) -> Floats:
        """Median of a column."""
        return self.quantile(values, 0.5)

    def deviation(self, values: Floats) -> Floats:
        """Standard deviation of a column (n - 1), NaN for one value."""
        mean = self.mean(values)
        index, known, count = self._measured(values)
        squares = np.bincount(index, (known - mean[index]) ** 2, self.number)
        return np.where(count > 1, np.sqrt(squares / np.where(count > 1, count - 1, 1.0)), np.nan)

    def different(self, values: Ints) -> Floats:
        """How many different numbers from 0 on a column holds, 0 if all are below."""
        pairs = combined(self.index, values)
        found = Groups(pairs.common(self.index), self.number).rows()
        return np.where(np.isnan(self.rows()), np.nan, np.nan_to_num(found))

    def common(self, values: Ints) -> Ints:
        """What a column holds in each group, where that is the same in all of its rows."""
        out = np.full(self.number, -1, dtype=np.int64)
        kept = self.index >= 0
        out[self.index[kept]] = values[kept]
        return out


def combined(*columns: Ints) -> Groups:
    """Groups of the rows that agree in all columns, by value; rows with a -1 belong to none."""
    known = np.logical_and.reduce([column >= 0 for column in columns])
    first, *others = (np.unique(column[known], return_inverse=True) for column in columns)
    number, codes = len(first[0]), first[1]
    for values, code in others:
        different, codes = np.unique(codes * len(values) + code, return_inverse=True)
        number = len(different)
    index = np.full(len(known), -1, dtype=np.int64)
    index[known] = codes
    return Groups(index, number)


def by_rank(table: pa.Table, ranks: Sequence[int]) -> Groups:
    """Groups of a table's rows by rank, in the order of `ranks`."""
    found = pd.Index(ranks).get_indexer(pd.Index(ints_of(table, "rank")))
    return Groups(found.astype(np.int64), len(ranks))


def ratio(above: float, below: float) -> float:
    """`above` over `below`: 1 where both are 0, at most 1000, NaN where either is unknown.

    >>> ratio(3.0, 2.0), ratio(0.0, 0.0), ratio(1.0, 0.0)
    (1.5, 1.0, 1000.0)
    """
    if not above >= 0 or not below >= 0:
        return float("nan")
    if below == 0:
        return 1.0 if above == 0 else MOST
    return min(above / below, MOST)


def reduced(values: Floats, reduce: Callable[[Floats], Any]) -> float:
    """Reduce what is known to one number, NaN where nothing is.

    >>> reduced(np.array([1.0, np.nan, 3.0]), np.median)
    2.0
    """
    known = values[~np.isnan(values)]
    return float(reduce(known)) if len(known) else float("nan")
