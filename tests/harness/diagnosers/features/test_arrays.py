"""Reductions by group agree with pandas, which they stand in for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from harness.diagnosers.features.arrays import Groups, combined

NUMBER = 4
HOW = {
    "sum": (lambda g, v: g.sum(v), lambda p: p.sum(min_count=1)),
    "mean": (lambda g, v: g.mean(v), lambda p: p.mean()),
    "most": (lambda g, v: g.most(v), lambda p: p.max()),
    "least": (lambda g, v: g.least(v), lambda p: p.min()),
    "median": (lambda g, v: g.median(v), lambda p: p.median()),
    "quantile": (lambda g, v: g.quantile(v, 0.3), lambda p: p.quantile(0.3)),
    "deviation": (lambda g, v: g.deviation(v), lambda p: p.std()),
    "rows": (lambda g, v: g.rows(), lambda p: p.size()),
}
index = arrays.arrays(np.int64, 12, elements=st.integers(-1, NUMBER - 1))
whole = arrays.arrays(np.int64, 12, elements=st.integers(-1, 3))
column = arrays.arrays(np.float64, 12, elements=st.one_of(st.just(np.nan), st.integers(-99, 99)))


@pytest.mark.parametrize("how", HOW)
@given(index=index, values=column)
def test_reduces_as_pandas_does(how: str, index: np.ndarray, values: np.ndarray) -> None:
    ours, theirs = HOW[how]
    kept = index >= 0
    expected = theirs(pd.Series(values)[kept].groupby(index[kept])).reindex(range(NUMBER))
    found = ours(Groups(index, NUMBER), values)
    np.testing.assert_allclose(found, expected.to_numpy(np.float64), rtol=1e-12, atol=1e-9)


@given(index=index, values=whole)
def test_counts_different_numbers_as_pandas_does(index: np.ndarray, values: np.ndarray) -> None:
    kept = index >= 0
    known = pd.Series(np.where(values < 0, np.nan, values))[kept]
    expected = known.groupby(index[kept]).nunique().reindex(range(NUMBER))
    found = Groups(index, NUMBER).different(values)
    np.testing.assert_array_equal(found, expected.to_numpy(np.float64))


@given(first=whole, second=whole)
def test_combined_rows_agree_in_all_columns(first: np.ndarray, second: np.ndarray) -> None:
    groups = combined(first, second)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    known = sorted({pair for pair in pairs if min(pair) >= 0})
    assert groups.number == len(known)
    assert groups.index.tolist() == [known.index(p) if p in known else -1 for p in pairs]
    assert groups.common(first).tolist() == [pair[0] for pair in known]


def test_no_rows_give_nothing() -> None:
    nothing = np.array([], dtype=np.int64)
    assert np.isnan(Groups(nothing, 2).quantile(np.array([]), 0.5)).all()
    assert combined(nothing, nothing).number == 0
