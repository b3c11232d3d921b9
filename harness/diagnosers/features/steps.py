"""Metrics of steps: where a rank's time goes, as the job times it itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cases.case import Recording
from harness.diagnosers.features.arrays import Columns, by_rank, floats_of, ints_of, rows_where

PARTS = ("data_wait", "forward", "backward", "optimizer", "checkpoint")
SPIKES = {"spike": "duration", "forward_spike": "forward", "gap_spike": "gap"}
USUAL = 0.4  # quantile that is taken for a step in which nothing happened


def step_metrics(run: Recording, ranks: Sequence[int]) -> Columns:
    """Return a number a rank; times are nanoseconds in a step. Step 0 is left out."""
    table = later_steps(run)
    values = {name: floats_of(table, f"{name}_ns") for name in ("duration", *PARTS)}
    values["tokens"] = floats_of(table, "tokens")
    values["gap"] = values["duration"] - sum(np.nan_to_num(values[name]) for name in PARTS)
    groups = by_rank(table, ranks)
    out = {name: groups.mean(column) for name, column in values.items()}
    for name, of in SPIKES.items():
        out[name] = out[of] - groups.quantile(values[of], USUAL)
    return out


def later_steps(run: Recording) -> pa.Table:
    """Steps without step 0, which pays what a job pays once."""
    table = run.arrow("steps")
    return rows_where(table, ints_of(table, "step") > 0)


def step_count(run: Recording) -> int:
    """How many steps were recorded (the spans of a rank's rows together)."""
    table = run.arrow("steps")
    rank = ints_of(table, "rank")
    known = rank[rank >= 0]
    if not len(known):
        return 0
    return int(np.nan_to_num(floats_of(table, "span")[rank == known.min()], nan=1.0).sum())


def mean_step_ns(run: Recording) -> float:
    """Mean duration of a step over all ranks, NaN where none was timed."""
    table = later_steps(run)
    duration, span = floats_of(table, "duration_ns"), floats_of(table, "span")
    timed = ~np.isnan(duration)
    weights = np.nan_to_num(span[timed], nan=1.0)
    total = float(weights.sum())
    return float((duration[timed] * weights).sum()) / total if total else float("nan")
