"""A CPU quota for some processes, by control groups of version 1 or 2.

The group is made below the caller's own group, or beside it where version 2 forbids children
(a group with processes cannot pass controllers on), or at the top.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cases.errors import ScenarioError

PERIOD_US = 100_000


@dataclass(frozen=True)
class CpuGroup:
    """One control group of the cpu controller: `path` its folder, `version` 1 or 2."""

    path: Path
    version: int

    def limit(self, cores: float) -> None:
        """Allow `cores` CPU seconds per second, counted over periods of 100 ms."""
        quota_us = int(cores * PERIOD_US)
        if self.version == 2:
            (self.path / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))

    def unlimit(self) -> None:
        """Take the quota away."""
        if self.version == 2:
            (self.path / "cpu.max").write_text(f"max {PERIOD_US}")
        else:
            (self.path / "cpu.cfs_quota_us").write_text("-1")

    def add(self, pid: int) -> None:
        """Move one process, with all its threads, into the group."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def throttled_ns(self) -> int:
        """Return the time for which the quota has held the group back."""
        stat = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return (
            int(stat["throttled_usec"]) * 1000 if self.version == 2 else int(stat["throttled_time"])
        )


@contextmanager
def cpu_group(name: str) -> Iterator[CpuGroup]:
    """Make a control group `name`; at the end its processes move back up and it is removed.

    Raises ScenarioError, naming every place that was tried, where none can be made.
    """
    group = _make(name)
    try:
        yield group
    finally:
        _remove(group)


def _make(name: str) -> CpuGroup:
    refusals = []
    for version, parent in _parents():
        group = CpuGroup(parent / name, version)
        try:
            group.path.mkdir()
        except OSError as error:
            refusals.append(f"{parent}: {error.strerror}")
            continue
        try:
            group.limit(os.cpu_count() or 1)
            group.unlimit()
        except OSError as error:
            group.path.rmdir()
            refusals.append(f"{error.filename}: {error.strerror}")
            continue
        return group
    tried = "; ".join(refusals) or "no cpu controller is mounted"
    raise ScenarioError("must be able to make a control group with a CPU quota", found=tried)


def _remove(group: CpuGroup) -> None:
    for pid in (group.path / "cgroup.procs").read_text().split():
        with suppress(OSError):  # it has ended since
            (group.path.parent / "cgroup.procs").write_text(pid)
    group.path.rmdir()


def _parents() -> list[tuple[int, Path]]:
    """Return (version, folder) of each group that may hold a new one, nearest first."""
    own = _own_groups()
    places = []
    for version, root in _mounts():
        here = root / own.get("cpu" if version == 1 else "", "/").lstrip("/")
        nearest = (here, here.parent, root) if here != root else (root,)
        places += [(version, place) for place in dict.fromkeys(nearest) if place.is_dir()]
    return places


def _mounts() -> list[tuple[int, Path]]:
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            found.append((1, Path(where)))
        elif kind == "cgroup2":
            found.append((2, Path(where)))
    return found


def _own_groups() -> dict[str, str]:
    """Return the path of this process's group for each controller; "" is version 2."""
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups
