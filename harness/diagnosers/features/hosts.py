"""Metrics of processes, hosts and network interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from cases.case import Recording
from harness.diagnosers.features.arrays import (
    Columns,
    Floats,
    Groups,
    by_rank,
    combined,
    floats_of,
    ints_of,
    rows_with,
    texts_of,
)

ORDINARY_NICE = 10
READS_PER_NS = 1e-4  # bytes read per ns of CPU time, from which on a process is one that polls
MSS_BYTES, PACKET_BYTES = 1448, 4096
PRESSURES = {
    "throttled": "cgroup_throttled_ns",
    "cpu_pressure": "psi_cpu_some_ns",
    "io_pressure": "psi_io_some_ns",
    "stolen": "cpu_steal_ns",
}


def process_metrics(run: Recording, ranks: Sequence[int], step_ns: float) -> Columns:
    """Return a number a rank of its process, its loader's workers and others on its host."""
    table = run.arrow("processes")
    length = sampled_ns(run)
    own = rows_with(table, "role", "rank")
    workers = rows_with(table, "role", "loader_worker")
    return (
        _own(own, ranks, length, step_ns)
        | _workers(workers, ranks)
        | _others(rows_with(table, "role", "other"), _hosts_of(own, ranks), length)
    )


def sampled_ns(run: Recording) -> float:
    """Wall time that one host's samples cover, the first interval included."""
    for name in ("processes", "host"):
        table = run.arrow(name)
        if len(table):
            hosts, _ = texts_of(table, "host")
            times = np.unique(floats_of(table, "time_ns")[hosts == hosts[0]])
            times = times[~np.isnan(times)]
            if len(times) > 1:
                return float(times[-1] - times[0]) * len(times) / (len(times) - 1)
    return float("nan")


def _own(table: pa.Table, ranks: Sequence[int], length: float, step_ns: float) -> Columns:
    groups = by_rank(table, ranks)
    cpu = groups.sum(floats_of(table, "cpu_ns"))
    delay = groups.sum(floats_of(table, "run_delay_ns"))
    return {
        "cores": cpu / length,
        "delay": delay / cpu,
        "asleep": step_ns * (1 - (cpu + delay) / length),
        "threads": groups.most(floats_of(table, "threads")),
        "affinity": groups.least(floats_of(table, "affinity")),
        "preempted": groups.sum(floats_of(table, "involuntary_switches")) / length * 1e9,
        "written": groups.sum(floats_of(table, "write_bytes")) / length * step_ns / 1e6,
    }


def _workers(table: pa.Table, ranks: Sequence[int]) -> Columns:
    groups = by_rank(table, ranks)
    cpu = groups.sum(floats_of(table, "cpu_ns"))
    return {
        "worker_affinity": groups.least(floats_of(table, "affinity")),
        "worker_delay": groups.sum(floats_of(table, "run_delay_ns")) / cpu,
        "worker_threads": groups.most(floats_of(table, "threads")),
        "worker_processes": groups.different(ints_of(table, "process")),
    }


def _hosts_of(own: pa.Table, ranks: Sequence[int]) -> list[str | None]:
    """The host on which each rank's process was seen, None where it was not."""
    hosts, names = texts_of(own, "host")
    return [names[code] if code >= 0 else None for code in by_rank(own, ranks).common(hosts)]


def _others(table: pa.Table, places: Sequence[str | None], length: float) -> Columns:
    """Cores that processes outside the job use on each rank's host, by kind."""
    hosts, names = texts_of(table, "host")
    each = combined(hosts, ints_of(table, "process"))
    cpu = np.nan_to_num(each.sum(floats_of(table, "cpu_ns")))
    polls = np.nan_to_num(each.sum(floats_of(table, "read_bytes"))) > READS_PER_NS * cpu
    ordinary = each.most(floats_of(table, "nice")) < ORDINARY_NICE
    kinds = {"foreign": ordinary & ~polls, "polling": ordinary & polls, "nice_foreign": ~ordinary}
    by_host = Groups(each.common(hosts), len(names))
    out = {}
    for name, kind in kinds.items():
        cores = by_host.sum(np.where(kind, cpu / length, 0.0))
        known = dict(zip(names, cores.tolist(), strict=True))
        out[name] = np.array([np.nan if host is None else known.get(host, 0.0) for host in places])
    return out


def host_metrics(run: Recording, ranks: Sequence[int], places: Mapping[int, str]) -> Columns:
    """Return a number a rank of the host that it runs on (`places`: rank -> name)."""
    table = run.arrow("host")
    hosts, names = texts_of(table, "host")
    groups, length = Groups(hosts, len(names)), sampled_ns(run)
    at = [names.index(places[rank]) if places[rank] in names else -1 for rank in ranks]

    def of_ranks(values: Floats) -> Floats:
        return np.append(values, np.nan)[at]

    moved = groups.mean(floats_of(table, "memory_bandwidth_bytes_per_s")) / 1e9
    sums = {name: groups.sum(floats_of(table, of)) / length for name, of in PRESSURES.items()}
    return {name: of_ranks(values) for name, values in (sums | {"memory_moved": moved}).items()}


def network_metrics(run: Recording, ranks: Sequence[int], steps: int) -> Columns:
    """Return a number a rank of its network interface."""
    table = run.arrow("network")
    groups, queued = by_rank(table, ranks), floats_of(table, "send_queue_bytes")
    sent = groups.sum(floats_of(table, "tx_bytes"))
    return {
        "resent": MSS_BYTES * groups.sum(floats_of(table, "retransmits")) / sent,
        "dropped": PACKET_BYTES * groups.sum(floats_of(table, "tx_dropped")) / sent,
        "queue": groups.mean(np.where(queued > 0, queued, np.nan)),
        "queue_all": groups.mean(queued),
        "sent": sent / steps if steps else np.full(len(ranks), np.nan),
    }
