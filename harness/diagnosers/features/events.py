"""Metrics of the runtime's events: collections, recompilations, retries, loads."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import floats, rank_of

TIMED = {"gc": "collected", "recompile": "recompiled", "allocator_retry": "retried"}
COUNTED = {"recompile": "recompiles", "allocator_retry": "retries"}


def event_metrics(run: Recording, ranks: list[int], steps: int) -> pd.DataFrame:
    """Return one row for each of `ranks`; times are nanoseconds in a step."""
    out = pd.DataFrame(index=pd.Index(ranks))
    frame = run.runtime
    if not run.has("runtime") or not steps:
        return out
    values = floats(frame, ["duration_ns", "value"]).assign(rank=rank_of(frame))
    event, detail = (frame[name].to_numpy(dtype=object) for name in ("event", "detail"))
    for name, metric in TIMED.items():
        own = values[event == name].groupby("rank")["duration_ns"].sum()
        out[metric] = own.reindex(ranks, fill_value=0.0) / steps
    for name, metric in COUNTED.items():
        counts = values[event == name].groupby("rank").size()
        out[metric] = counts.reindex(ranks, fill_value=0) / steps
    for name in ("expert_tokens", "embedding_rows"):
        out[name] = values[event == name].groupby("rank")["value"].sum() / steps
    lengths = event == "sequence_lengths"
    out["length_sum"] = _means(values[lengths & (detail == "sum")])
    squares = values[lengths & (detail == "sum of squares")]
    out["length_squares"] = _means(squares)
    out["length_spread"] = squares.groupby("rank")["value"].std() / out["length_squares"]
    return out


def _means(values: pd.DataFrame) -> pd.Series[float]:
    return values.groupby("rank")["value"].mean().astype(np.float64)
