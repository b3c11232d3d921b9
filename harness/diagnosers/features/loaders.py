"""Metrics of data loaders: reading, decoding, and which worker or rank is slow."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import Floats, floats, rank_of

WIDE = 1.3  # times the median, from which on a batch's slowest rank stands out


def loader_metrics(run: Recording) -> pd.DataFrame:
    """Return one row a rank."""
    frame = run.loader
    if not len(frame):
        return pd.DataFrame()
    names = ["fetch_ns", "read_ns", "cpu_ns", "read_bytes", "queue_depth", "worker", "batch"]
    values = floats(frame, names).assign(rank=rank_of(frame))
    values["decode_wall"] = values["fetch_ns"] - values["read_ns"]
    groups = values.groupby("rank")
    means, fetch = groups.mean(), groups["fetch_ns"]
    out = pd.DataFrame({"fetch": fetch.median(), "fetch_least": fetch.quantile(0.2)})
    out["fetch_mean"], out["read"] = means["fetch_ns"], means["read_ns"]
    out["read_share"] = means["read_ns"] / means["fetch_ns"]
    quarter = groups[["cpu_ns", "decode_wall"]].quantile(0.25)
    out["decode"], out["decode_wall"] = quarter["cpu_ns"], quarter["decode_wall"]
    out["stalled"] = means["decode_wall"] / means["cpu_ns"].where(means["cpu_ns"] > 0)
    out["read_bytes"] = means["read_bytes"]
    out["read_speed"] = means["read_bytes"] / means["read_ns"].where(means["read_ns"] > 0)
    out["workers"], out["queued_batches"] = groups["worker"].nunique(), means["queue_depth"]
    out["uneven_workers"] = _uneven(values)
    out["slowest_batches"] = _slowest(values)
    return out


def worker_times(values: pd.DataFrame) -> pd.Series[float]:
    """The 0.2 quantile of fetch_ns by (rank, worker)."""
    return values.groupby(["rank", "worker"])["fetch_ns"].quantile(0.2)


def _uneven(values: pd.DataFrame) -> pd.Series[float]:
    times = worker_times(values).groupby(level="rank")
    return times.max() / times.min()


def _slowest(values: pd.DataFrame) -> pd.Series[float]:
    """Share of batches at which a rank's fetch is the longest by far."""
    groups = values.groupby("batch")["fetch_ns"]
    fetch: Floats = values["fetch_ns"].to_numpy(dtype=np.float64)
    wide = groups.transform("max") > WIDE * groups.transform("median")
    slowest = wide & (fetch == groups.transform("max"))
    shares: pd.Series[float] = slowest.groupby(values["rank"]).mean()
    return shares
