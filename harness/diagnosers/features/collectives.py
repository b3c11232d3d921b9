"""Metrics of collectives: how long they take by themselves, and who is waited for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cases.case import Recording
from harness.diagnosers.features.arrays import Floats, Ints

SMALL_BYTES = 4096
LEAST = 0.2


def collective_metrics(run: Recording, steps: int) -> pd.DataFrame:
    """Return one row a rank; times are nanoseconds in a step."""
    table = run.arrow("collectives")
    if not len(table) or not steps:
        return pd.DataFrame()
    rank, kind = ints_of(table, "rank"), kind_numbers(table)
    length = floats_of(table, "completed_ns") - began_ns(table)
    payload = floats_of(table, "bytes")
    frame = pd.DataFrame({"rank": rank, "length": length, "bytes": payload})
    frame["small"] = payload < SMALL_BYTES
    by_rank = frame.groupby("rank")
    out = by_rank[["length", "bytes", "small"]].sum(min_count=1) / steps
    out.columns = pd.Index(["joined", "bytes", "small_calls"])
    out["calls"] = by_rank.size() / steps
    out["transfer"] = _transfers(frame, kind) / steps
    out["held"] = out["joined"] - out["transfer"]
    late = _lateness(table)
    groups = pd.Series(late).groupby(rank)
    # A rank is late in a step as often as it is asked; the mean call stands for the step.
    out["asked_late"], out["asked_late_least"] = groups.mean(), groups.quantile(LEAST)
    return out


def _transfers(frame: pd.DataFrame, kind: Ints) -> pd.Series[float]:
    """Nanoseconds of all calls if each took the least that its kind took on this rank."""
    grouped = frame.assign(kind=kind).groupby(["rank", "kind"])["length"]
    least, calls = grouped.min(), grouped.size()
    return (least * calls).groupby(level="rank").sum(min_count=1)


def _lateness(table: pa.Table) -> Floats:
    """When each member asked, less when the median member of the same call did."""
    created = floats_of(table, "created_ns")
    usual = pd.Series(created).groupby(call_numbers(table)).transform("median").to_numpy(np.float64)
    return np.asarray(created - usual)


def began_ns(table: pa.Table) -> Floats:
    """When a member began to wait for the others: started, or asked where that is not told."""
    return np.asarray(np.fmax(floats_of(table, "started_ns"), floats_of(table, "created_ns")))


def call_numbers(table: pa.Table) -> Ints:
    """Number the calls: members of one call share group and sequence number."""
    return np.asarray(codes_of(table, "process_group") * 2**40 + ints_of(table, "seq"))


def kind_numbers(table: pa.Table) -> Ints:
    """Number the kinds of calls: those of one group, operation and size."""
    sizes = np.unique(ints_of(table, "bytes"), return_inverse=True)[1].astype(np.int64)
    return np.asarray(
        (codes_of(table, "process_group") * 64 + codes_of(table, "op")) * 2**24 + sizes
    )


def codes_of(table: pa.Table, name: str) -> Ints:
    """A text column as numbers of its different values."""
    encoded = table[name].combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def ints_of(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers, -1 where not measured."""
    column: Any = table[name]
    known: Any = pc.fill_null(column, -1)
    return np.asarray(known.to_numpy(), dtype=np.int64)


def floats_of(table: pa.Table, name: str) -> Floats:
    """A column of floats, NaN where not measured."""
    return np.asarray(table[name].cast(pa.float64()).to_numpy(), dtype=np.float64)
