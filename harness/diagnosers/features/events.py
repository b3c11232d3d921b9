"""Metrics of the runtime's events: collections, recompilations, retries, loads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cases.case import Recording
from harness.diagnosers.features.arrays import Columns, Floats, by_rank, floats_of, rows_with

TIMED = {"gc": "collected", "recompile": "recompiled", "allocator_retry": "retried"}
COUNTED = {"recompile": "recompiles", "allocator_retry": "retries"}
LOADS = ("expert_tokens", "embedding_rows")


def event_metrics(run: Recording, ranks: Sequence[int], steps: int) -> Columns:
    """Return a number for each of `ranks`; times are nanoseconds in a step."""
    if not run.has("runtime") or not steps:
        return {}
    table = run.arrow("runtime")
    out = {}
    for name, metric in TIMED.items():
        out[metric] = np.nan_to_num(_sum(rows_with(table, "event", name), ranks, "duration_ns"))
    for name, metric in COUNTED.items():
        out[metric] = np.nan_to_num(by_rank(rows_with(table, "event", name), ranks).rows())
    for name in LOADS:
        out[name] = _sum(rows_with(table, "event", name), ranks, "value")
    return {name: values / steps for name, values in out.items()} | _lengths(table, ranks)


def _sum(table: pa.Table, ranks: Sequence[int], name: str) -> Floats:
    return by_rank(table, ranks).sum(np.nan_to_num(floats_of(table, name)))


def _lengths(table: pa.Table, ranks: Sequence[int]) -> Columns:
    """How long sequences are, and how unlike from step to step."""
    lengths = rows_with(table, "event", "sequence_lengths")
    sums = rows_with(lengths, "detail", "sum")
    squares = rows_with(lengths, "detail", "sum of squares")
    groups, values = by_rank(squares, ranks), floats_of(squares, "value")
    mean = groups.mean(values)
    return {
        "length_sum": by_rank(sums, ranks).mean(floats_of(sums, "value")),
        "length_squares": mean,
        "length_spread": groups.deviation(values) / mean,
    }
