"""Metrics of processes, hosts and network interfaces."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import column, floats, rank_of

ORDINARY_NICE = 10
READS_PER_NS = 1e-4  # bytes read per ns of CPU time, from which on a process is one that polls
MSS_BYTES, PACKET_BYTES = 1448, 4096
COUNTERS = ("cpu_ns", "run_delay_ns", "involuntary_switches", "read_bytes", "write_bytes")
PRESSURES = {
    "throttled": "cgroup_throttled_ns",
    "cpu_pressure": "psi_cpu_some_ns",
    "io_pressure": "psi_io_some_ns",
    "stolen": "cpu_steal_ns",
}


def process_metrics(run: Recording, step_ns: float) -> pd.DataFrame:
    """Return one row a rank of its process, its loader's workers and others on its host."""
    frame = run.processes
    if not len(frame):
        return pd.DataFrame()
    length = sampled_ns(run)
    role = frame["role"].to_numpy(dtype=object)
    own, workers = frame[role == "rank"], frame[role == "loader_worker"]
    out = _own(own, length, step_ns).join(_workers(workers), how="outer")
    others = _others(frame[role == "other"], length)
    host = own.drop_duplicates("rank").set_index("rank")["host"]
    place = pd.Series(host.to_numpy(dtype=object), index=host.index.to_numpy(dtype=np.int64))
    for name in others.columns:
        out[name] = place.map(others[name]).fillna(0.0)
    return out


def sampled_ns(run: Recording) -> float:
    """Wall time that one host's samples cover, the first interval included."""
    for frame in (run.processes, run.host):
        if len(frame):
            times = np.unique(column(frame[frame["host"] == frame["host"].iloc[0]], "time_ns"))
            times = times[~np.isnan(times)]
            if len(times) > 1:
                return float(times[-1] - times[0]) * len(times) / (len(times) - 1)
    return float("nan")


def _own(frame: pd.DataFrame, length: float, step_ns: float) -> pd.DataFrame:
    values = floats(frame, [*COUNTERS, "threads", "affinity"])
    groups = values.groupby(rank_of(frame))
    sums = groups[list(COUNTERS)].sum(min_count=1)
    out = pd.DataFrame({"cores": sums["cpu_ns"] / length})
    out["delay"] = sums["run_delay_ns"] / sums["cpu_ns"]
    out["asleep"] = step_ns * (1 - (sums["cpu_ns"] + sums["run_delay_ns"]) / length)
    out["threads"], out["affinity"] = groups["threads"].max(), groups["affinity"].min()
    out["preempted"] = sums["involuntary_switches"] / length * 1e9
    out["written"] = sums["write_bytes"] / length * step_ns / 1e6
    return out


def _workers(frame: pd.DataFrame) -> pd.DataFrame:
    values = floats(frame, ["cpu_ns", "run_delay_ns", "affinity", "threads", "process"])
    groups = values.groupby(rank_of(frame))
    sums = groups[["cpu_ns", "run_delay_ns"]].sum(min_count=1)
    out = pd.DataFrame({"worker_affinity": groups["affinity"].min()})
    out["worker_delay"] = sums["run_delay_ns"] / sums["cpu_ns"]
    out["worker_threads"] = groups["threads"].max()
    out["worker_processes"] = groups["process"].nunique()
    return out


def _others(frame: pd.DataFrame, length: float) -> pd.DataFrame:
    """Cores that processes outside the job use, by host and kind."""
    values = floats(frame, ["cpu_ns", "read_bytes", "nice", "process"])
    values["host"] = frame["host"].to_numpy(dtype=object)
    each = values.groupby(["host", "process"]).agg(
        cpu=("cpu_ns", "sum"), read=("read_bytes", "sum"), nice=("nice", "max")
    )
    cores, reads = each["cpu"] / length, each["read"] > READS_PER_NS * each["cpu"]
    ordinary = each["nice"] < ORDINARY_NICE
    kinds = {
        "foreign": cores.where(ordinary & ~reads, 0.0),
        "polling": cores.where(ordinary & reads, 0.0),
        "nice_foreign": cores.where(~ordinary, 0.0),
    }
    return pd.DataFrame(kinds).groupby(level="host").sum()


def host_metrics(run: Recording, hosts: dict[int, str]) -> pd.DataFrame:
    """Return one row a rank of the host that it runs on (`hosts`: rank -> name)."""
    frame = run.host
    if not len(frame):
        return pd.DataFrame()
    values = floats(frame, [*PRESSURES.values(), "memory_bandwidth_bytes_per_s"])
    groups = values.groupby(frame["host"].to_numpy(dtype=object))
    length = sampled_ns(run)
    sums = groups[list(PRESSURES.values())].sum(min_count=1) / length
    place = pd.Series(hosts)
    out = pd.DataFrame({name: place.map(sums[of]) for name, of in PRESSURES.items()})
    out["memory_moved"] = place.map(groups["memory_bandwidth_bytes_per_s"].mean() / 1e9)
    return out


def network_metrics(run: Recording, steps: int) -> pd.DataFrame:
    """Return one row a rank of its network interface."""
    frame = run.network
    if not len(frame):
        return pd.DataFrame()
    names = ["tx_bytes", "tx_dropped", "retransmits", "send_queue_bytes"]
    values = floats(frame, names)
    values["filled"] = values["send_queue_bytes"].where(values["send_queue_bytes"] > 0)
    groups = values.groupby(rank_of(frame))
    sums = groups[names[:3]].sum(min_count=1)
    out = pd.DataFrame({"resent": MSS_BYTES * sums["retransmits"] / sums["tx_bytes"]})
    out["dropped"] = PACKET_BYTES * sums["tx_dropped"] / sums["tx_bytes"]
    out["queue"], out["queue_all"] = groups["filled"].mean(), groups["send_queue_bytes"].mean()
    out["sent"] = sums["tx_bytes"] / steps if steps else np.nan
    return out
