"""Columns as plain float arrays, and sums and means of them by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 1000.0  # a ratio beyond it says no more


def column(frame: pd.DataFrame, name: str) -> Floats:
    """One column as floats; what was not measured is NaN."""
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def floats(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Several columns as floats, with a fresh index."""
    return pd.DataFrame({name: column(frame, name) for name in names})


def measured(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows in which all of these columns were measured."""
    return frame[frame[list(names)].notna().all(axis=1)]


def rank_of(frame: pd.DataFrame) -> Ints:
    """The column `rank`, -1 where a row belongs to none."""
    return frame["rank"].to_numpy(dtype=np.int64, na_value=-1)


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


def quantile(values: Floats, share: float) -> float:
    """The `share` quantile (the lower of two) of what was measured, NaN where nothing was."""
    known = np.sort(values[~np.isnan(values)])
    return float(known[int(share * (len(known) - 1))]) if len(known) else float("nan")


def over_ranks(values: pd.Series[float], reduce: Callable[[Floats], float]) -> float:
    """Reduce what is known of ranks to one number, NaN where nothing is."""
    known: Floats = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(reduce(known)) if len(known) else float("nan")
