"""Samples as datapath-doctor's own collectors would have taken them.

Its fields on the disk (utilisation, latency, operations), on the kind of storage and on shuffle
buffers stay empty: a recording has no such column.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.rows import Row, rows

PREFETCH = 2  # torch.utils.data.DataLoader's own default of prefetch_factor
KNOWN = ("rank", "step", "start_ns", "duration_ns")
STEP = ("rank", "step", "start_ns", "duration_ns", "data_wait_ns", "checkpoint_ns")


def inputs(case: Case) -> dict[str, Any]:
    """Give one sample a rank and step; what is sampled by time is that of the last sample."""
    hosts = {place.rank: place.host for place in case.info.topology.ranks}
    depths = _by_key(rows(case.loader, ("rank", "batch", "queue_depth")), ("rank", "batch"))
    workers = _Workers(rows(case.processes, _Workers.COLUMNS, ("time_ns",)))
    disks = _Disks(rows(case.host, _Disks.COLUMNS, ("host", "time_ns")))
    found = []
    for row in rows(case.steps, STEP, KNOWN):
        rank, end_ns = row["rank"], row["start_ns"] + row["duration_ns"]
        depth = depths.get((rank, row["step"]), {}).get("queue_depth")
        sample = {
            "t": end_ns / 1e9,
            "step": row["step"],
            "rank": rank,
            "world_size": len(hosts),
            "node_id": hosts[rank],
            **_times(row),
            **_pool(case),
            "queue_depth": depth,
            **workers.at(rank, end_ns),
            **disks.at(hosts[rank], end_ns),
        }
        found.append({name: value for name, value in sample.items() if value is not None})
    return {"samples": found}


def _times(row: Row) -> Row:
    wait_ns, saved_ns = row["data_wait_ns"], row["checkpoint_ns"]
    return {
        "step_time_s": row["duration_ns"] / 1e9,
        "data_wait_s": None if wait_ns is None else wait_ns / 1e9,
        "compute_time_s": None if wait_ns is None else (row["duration_ns"] - wait_ns) / 1e9,
        "checkpoint_write_s": saved_ns / 1e9 if saved_ns else None,
        "checkpoint_blocking": True if saved_ns else None,  # it is a part of the step
    }


def _pool(case: Case) -> Row:
    number = case.config.get("workers")
    if not isinstance(number, int) or not number:
        return {}
    factor = int(case.config.get("prefetch", PREFETCH))
    return {
        "num_workers": number,
        "prefetch_factor": factor,
        "queue_capacity": number * factor,
    }


def _by_key(found: list[Row], names: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[name] for name in names): row for row in found}


class _Workers:
    """CPU share of each rank's loader workers, and how many were replaced, as its monitor counts.

    A worker counts as restarted when one number is gone and a new one is there
    (`WorkerProcessMonitor.sample`).
    """

    COLUMNS = ("role", "rank", "process", "time_ns", "cpu_ns")

    def __init__(self, found: list[Row]) -> None:
        samples: dict[int, dict[int, dict[int, Row]]] = {}
        for row in found:
            if row["role"] == "loader_worker" and row["rank"] is not None:
                at = samples.setdefault(row["rank"], {}).setdefault(row["time_ns"], {})
                at[row["process"]] = row
        self._times = {rank: sorted(by_time) for rank, by_time in samples.items()}
        self._values = {rank: self._walk(by_time) for rank, by_time in samples.items()}

    def at(self, rank: int, time_ns: int) -> Row:
        """What was known at a time; nothing before the first sample."""
        index = bisect_right(self._times.get(rank, []), time_ns)
        return self._values[rank][index - 1] if index else {}

    @staticmethod
    def _walk(by_time: dict[int, dict[int, Row]]) -> list[Row]:
        values, before_ns, known, restarts = [], 0, set[int](), 0
        for time_ns, workers in sorted(by_time.items()):
            gone, new = known - set(workers), set(workers) - known
            restarts += min(len(gone), len(new)) if known else 0
            used = [row["cpu_ns"] for row in workers.values() if row["cpu_ns"] is not None]
            share = sum(used) / len(used) / (time_ns - before_ns) if used else None
            percent = None if share is None else 100 * share
            values.append({"worker_cpu_pct": percent, "worker_restarts": restarts})
            before_ns, known = time_ns, set(workers)
        return values


class _Disks:
    """Reads from block devices, and pressure for want of I/O, of each host."""

    COLUMNS = ("host", "time_ns", "disk_read_bytes", "psi_io_some_ns")

    def __init__(self, found: list[Row]) -> None:
        self._times: dict[str, list[int]] = {}
        self._values: dict[str, list[Row]] = {}
        for row in found:
            times = self._times.setdefault(row["host"], [])
            length_ns = row["time_ns"] - (times[-1] if times else 0)
            times.append(row["time_ns"])
            self._values.setdefault(row["host"], []).append(self._value(row, length_ns))

    def at(self, host: str, time_ns: int) -> Row:
        """What was known at a time; nothing before the first sample."""
        index = bisect_right(self._times.get(host, []), time_ns)
        return self._values[host][index - 1] if index else {}

    @staticmethod
    def _value(row: Row, length_ns: int) -> Row:
        read, waited_ns = row["disk_read_bytes"], row["psi_io_some_ns"]
        if length_ns <= 0:
            return {}
        return {
            "disk_read_bytes_per_s": None if read is None else read * 1e9 / length_ns,
            "psi_io_some_avg10": None if waited_ns is None else 100 * waited_ns / length_ns,
        }
