"""Rows of the table `runtime` from arrays over steps and ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from injectors.sim.noise import Ints


def event_rows(
    event: str,
    time_ns: Ints,
    value: Ints,
    duration_ns: Ints | None = None,
    detail: str | Sequence[str] = "",
    where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None = None,
) -> pd.DataFrame:
    """Return one row for each step and rank.

    Args:
        event: Its name.
        time_ns: (steps, ranks), in simulated time.
        value: (steps, ranks).
        duration_ns: (steps, ranks); None: it has no length.
        detail: The words of all, or one for each rank.
        where: (steps, ranks), where it happened; None: everywhere.
    """
    here = np.ones(time_ns.shape, bool) if where is None else where
    step, rank = np.nonzero(here)
    words = np.array(detail, object)[rank] if not isinstance(detail, str) else detail
    lengths = None if duration_ns is None else duration_ns[step, rank]
    return pd.DataFrame(
        {
            "rank": rank.astype(np.int64),
            "time_ns": time_ns[step, rank],
            "event": event,
            "duration_ns": pd.array([pd.NA] * len(rank), "Int64") if lengths is None else lengths,
            "value": value[step, rank].astype(np.float64),
            "detail": words,
        }
    )
