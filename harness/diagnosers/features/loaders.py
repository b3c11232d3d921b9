"""Metrics of data loaders: reading, decoding, and which worker or rank is slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cases.case import Recording
from harness.diagnosers.features.arrays import (
    Columns,
    Floats,
    Groups,
    Ints,
    by_rank,
    combined,
    floats_of,
    ints_of,
)

USUAL = 0.2  # quantile that is taken for a batch in which nothing happened
WIDE = 1.3  # times the median, from which on a batch's slowest rank stands out


def loader_metrics(run: Recording, ranks: Sequence[int]) -> Columns:
    """Return a number a rank."""
    table = run.arrow("loader")
    groups, worker = by_rank(table, ranks), ints_of(table, "worker")
    fetch, read, cpu = (floats_of(table, name) for name in ("fetch_ns", "read_ns", "cpu_ns"))
    fetch_mean, read_mean, cpu_mean = (groups.mean(values) for values in (fetch, read, cpu))
    read_bytes = groups.mean(floats_of(table, "read_bytes"))
    return {
        "fetch": groups.median(fetch),
        "fetch_least": groups.quantile(fetch, USUAL),
        "fetch_mean": fetch_mean,
        "read": read_mean,
        "read_share": read_mean / fetch_mean,
        "decode": groups.quantile(cpu, 0.25),
        "decode_wall": groups.quantile(fetch - read, 0.25),
        "stalled": groups.mean(fetch - read) / np.where(cpu_mean > 0, cpu_mean, np.nan),
        "read_bytes": read_bytes,
        "read_speed": read_bytes / np.where(read_mean > 0, read_mean, np.nan),
        "workers": groups.different(worker),
        "queued_batches": groups.mean(floats_of(table, "queue_depth")),
        "uneven_workers": _uneven(groups, worker, fetch),
        "slowest_batches": groups.mean(_slowest(ints_of(table, "batch"), fetch)),
    }


def _uneven(groups: Groups, worker: Ints, fetch: Floats) -> Floats:
    """How much longer a rank's slowest worker takes than its fastest one."""
    workers = combined(groups.index, worker)
    owners, times = workers.common(groups.index), workers.quantile(fetch, USUAL)
    by_rank = Groups(owners, groups.number)
    return np.asarray(by_rank.most(times) / by_rank.least(times))


def _slowest(batch: Ints, fetch: Floats) -> Floats:
    """Rows at which a rank's fetch is the longest of its batch by far."""
    groups = combined(batch)
    longest, usual = (
        np.append(values, np.nan)[groups.index]
        for values in (groups.most(fetch), groups.median(fetch))
    )
    return np.asarray((longest > WIDE * usual) & (fetch == longest), dtype=np.float64)
