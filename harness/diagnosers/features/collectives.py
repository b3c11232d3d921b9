"""Metrics of collectives: how long they take by themselves, and who is waited for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cases.case import Recording
from harness.diagnosers.features.arrays import (
    Columns,
    Floats,
    Groups,
    Ints,
    by_rank,
    codes_of,
    combined,
    floats_of,
    ints_of,
)

SMALL_BYTES = 4096
LEAST = 0.2


def collective_metrics(run: Recording, ranks: Sequence[int], steps: int) -> Columns:
    """Return a number a rank; times are nanoseconds in a step."""
    table = run.arrow("collectives")
    if not len(table) or not steps:
        return {}
    groups = by_rank(table, ranks)
    length = floats_of(table, "completed_ns") - began_ns(table)
    payload = floats_of(table, "bytes")
    joined = groups.sum(length) / steps
    transfer = _transfers(groups, length, kind_numbers(table)) / steps
    return {
        "joined": joined,
        "bytes": groups.sum(payload) / steps,
        "small_calls": groups.sum(payload < SMALL_BYTES) / steps,
        "calls": groups.rows() / steps,
        "transfer": transfer,
        "held": joined - transfer,
    }


def _transfers(groups: Groups, length: Floats, kind: Ints) -> Floats:
    """Nanoseconds of all calls if each took the least that its kind took on this rank."""
    kinds = combined(groups.index, kind)
    owners = Groups(kinds.common(groups.index), groups.number)
    return owners.sum(kinds.least(length) * kinds.rows())


def lateness_metrics(run: Recording, ranks: Sequence[int], steps: int) -> Columns:
    """Return a number a rank: how late it asks, in nanoseconds."""
    table = run.arrow("collectives")
    if not len(table) or not steps:
        return {}
    groups, late = by_rank(table, ranks), _lateness(table)
    # A rank is late in a step as often as it is asked; the mean call stands for the step.
    return {"asked_late": groups.mean(late), "asked_late_least": groups.quantile(late, LEAST)}


def _lateness(table: pa.Table) -> Floats:
    """When each member asked, less when the median member of the same call did."""
    created = floats_of(table, "created_ns")
    calls = combined(call_numbers(table))
    return np.asarray(created - calls.median(created)[calls.index])


def began_ns(table: pa.Table) -> Floats:
    """When a member began to wait for the others: started, or asked where that is not told."""
    return np.asarray(np.fmax(floats_of(table, "started_ns"), floats_of(table, "created_ns")))


def call_numbers(table: pa.Table) -> Ints:
    """Number the calls: members of one call share group and sequence number."""
    return np.asarray((codes_of(table, "process_group") + 1) * 2**40 + ints_of(table, "seq") + 1)


def kind_numbers(table: pa.Table) -> Ints:
    """Number the kinds of calls: those of one group, operation and size."""
    sizes = np.unique(ints_of(table, "bytes"), return_inverse=True)[1].astype(np.int64)
    group, operation = codes_of(table, "process_group") + 1, codes_of(table, "op") + 1
    return np.asarray((group * 64 + operation) * 2**24 + sizes)
