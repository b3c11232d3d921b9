"""Samples the host, its processes and the ranks' networks while a window is recorded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from injectors.cgroups import throttled_ns
from injectors.recorder import procfs
from injectors.recorder.growth import growth, growths, process_growth
from injectors.recorder.nvml import NvmlSampler

INTERVAL_S = 0.2
NOTABLE_SHARE = 0.02  # of one core: other processes that use less are left out
WORKER_NAME = "pt_data_worker"  # a loader worker's, once it has begun
KEPT_NAMES = frozenset({"python", "python3"})
NVLINK_COUNTERS = ("nvlink_tx_bytes", "nvlink_rx_bytes")


@dataclass(frozen=True)
class Role:
    """What a process is to the job."""

    role: str
    rank: int | None = None
    worker: int | None = None
    host: str = "host0"


@dataclass
class Sampler:
    """A thread that reads counters at a fixed interval.

    Args:
        roles: The job's own processes by process id, to which workers are added that a rank
            starts meanwhile; other processes count as host0's.
        names: Names that other processes may keep; the rest are called `system`.
        interface: Network interface of the ranks, None where ranks share the host's.
    """

    roles: dict[int, Role]
    names: frozenset[str]
    interface: str | None
    start_ns: int
    nvml: NvmlSampler | None = None
    _samples: list[dict[str, Any]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._samples.append(self._sample())
            if self._stop.wait(INTERVAL_S):
                self._samples.append(self._sample())
                return

    def _sample(self) -> dict[str, Any]:
        now = time.monotonic_ns() - self.start_ns
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        stats = {pid: stat for pid in pids if (stat := procfs.process_stat(pid)) is not None}
        self._add_new_workers(stats)
        watched = [p for p, stat in stats.items() if p in self.roles or self._is_busy(p, stat)]
        return {
            "time_ns": now,
            "host": procfs.host_counters(),
            "levels": procfs.host_levels(),
            "throttled_ns": throttled_ns(self.roles),
            "gpu": self.nvml.sample(now) if self.nvml else [],
            "stats": stats,
            "counters": {
                pid: counters
                for pid in watched
                if (counters := procfs.process_counters(pid)) is not None
            },
            "affinity": {pid: procfs.affinity(pid) for pid in watched},
            "network": {
                role.rank: procfs.network_counters(pid, self.interface)
                for pid, role in self.roles.items()
                if self.interface and role.role == "rank"
            },
        }

    def _add_new_workers(self, stats: Mapping[int, procfs.ProcessStat]) -> None:
        """Give processes that ranks have forked their role, numbered in order of their start."""
        living: dict[int | None, int] = {}
        for pid, stat in sorted(stats.items()):
            parent = self.roles.get(stat.parent) if stat.parent in stats else None
            if parent is None or parent.role != "rank":
                continue
            if stat.name not in (WORKER_NAME, stats[stat.parent].name):
                continue
            if self.roles.get(pid, parent).role == "other":
                continue
            number = living.get(parent.rank, 0)
            living[parent.rank] = number + 1
            self.roles.setdefault(pid, replace(parent, role="loader_worker", worker=number))

    def _is_busy(self, pid: int, stat: procfs.ProcessStat) -> bool:
        """Tell whether a process gained CPU time since the last sample (kernel threads apart)."""
        if not self._samples or stat.rss_bytes == 0:
            return stat.rss_bytes > 0 and stat.name in self.names
        before = self._samples[-1]["stats"].get(pid)
        return before is None or stat.cpu_ns > before.cpu_ns

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return rows of `host`, `processes`, `network` (growth per interval) and `gpu`."""
        pairs = list(zip(self._samples, self._samples[1:], strict=False))
        notable = self._notable()
        numbers = {pid: i for i, pid in enumerate(notable)}
        tables: dict[str, list[dict[str, Any]]] = {"host": [], "processes": [], "network": []}
        tables["gpu"] = self._gpu_rows()
        for before, after in pairs:
            # Where hosts share a machine, an agent on each reads what is that machine's.
            hosts = {role.host for role in self.roles.values()} or {Role("other").host}
            tables["host"] += [self._host_row(host, before, after) for host in sorted(hosts)]
            for pid in notable:
                new = pid in self.roles and pid not in before["stats"]
                if pid in after["counters"] and (new or pid in before["counters"]):
                    tables["processes"].append(self._process_row(numbers[pid], pid, before, after))
            for rank, counters in after["network"].items():
                tables["network"].append(_network_row(rank, counters, before, after))
        return tables

    def _gpu_rows(self) -> list[dict[str, Any]]:
        """NVML's NVLink counters run since the driver was loaded: count from the first sample."""
        first = {row["rank"]: row for row in self._samples[0]["gpu"]}
        return [
            row | {name: growth(row[name], first[row["rank"]][name]) for name in NVLINK_COUNTERS}
            for sample in self._samples
            for row in sample["gpu"]
        ]

    def _notable(self) -> list[int]:
        """The job's own processes, then others by process id, those below the share left out."""
        first, last = self._samples[0], self._samples[-1]
        elapsed = last["time_ns"] - first["time_ns"]
        own = [pid for pid in self.roles if any(pid in s["stats"] for s in self._samples)]
        others = []
        for pid, stat in sorted(last["stats"].items()):
            before = first["stats"].get(pid)
            used = stat.cpu_ns - (before.cpu_ns if before else 0)
            if pid not in self.roles and used > NOTABLE_SHARE * elapsed and stat.rss_bytes:
                others.append(pid)
        return own + others

    def _host_row(self, host: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        return {
            "host": host,
            "time_ns": after["time_ns"],
            "cores": len(os.sched_getaffinity(0)),
            "cgroup_throttled_ns": growth(after["throttled_ns"], before["throttled_ns"]),
            **growths(after["host"], before["host"]),
            **after["levels"],
        }

    def _process_row(
        self, number: int, pid: int, before: dict[str, Any], after: dict[str, Any]
    ) -> dict[str, Any]:
        stat, role = after["stats"][pid], self.roles.get(pid, Role("other"))
        known = pid in self.roles or stat.name in self.names | KEPT_NAMES
        return {
            "host": role.host,
            "time_ns": after["time_ns"],
            "process": number,
            "role": role.role,
            "rank": role.rank,
            "worker": role.worker,
            "name": stat.name if known else "system",
            "nice": stat.nice,
            "threads": stat.threads,
            "affinity": after["affinity"][pid],
            "rss_bytes": stat.rss_bytes,
            **process_growth(after["counters"][pid], before["counters"].get(pid)),
        }


def _network_row(
    rank: int, counters: dict[str, int], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Any]:
    return {
        "rank": rank,
        "time_ns": after["time_ns"],
        **growths(counters, before["network"].get(rank, {})),
        "send_queue_bytes": counters.get("send_queue_bytes"),
    }
