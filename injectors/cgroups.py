"""A CPU quota for some processes, by control groups of version 1 or 2.

The group is made below the caller's own group, or beside it where version 2 forbids children
(a group with processes cannot pass controllers on), or at the top. A group outlives a process
that is killed, so its name tells which process made it, and `remove_abandoned` finds those
whose maker is gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cases.errors import ScenarioError
from injectors.ownership import is_abandoned, own_name

PERIOD_US = 100_000
EMPTYING_S = 2.0  # processes that were just killed stay in their group for a moment


@dataclass(frozen=True)
class CpuGroup:
    """One control group of the cpu controller: `path` its folder, `version` 1 or 2.

    `home` is the folder of the group that its processes go back to.
    """

    path: Path
    version: int
    home: Path

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
    """Make a control group; at the end its processes move to this process's group again.

    Args:
        name: What it is for; the whole name also says which process made it.

    Raises:
        ScenarioError: None can be made; names every place that was tried.
    """
    group = _make(own_name(name))
    try:
        yield group
    finally:
        _remove(group)


def _make(name: str) -> CpuGroup:
    refusals = []
    for version, home, parent in _parents():
        group = CpuGroup(parent / name, version, home)
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
    """Empty a group and remove it; the end of its last process may take a moment."""
    deadline = time.monotonic() + EMPTYING_S
    while True:
        for pid in (group.path / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it has ended since
                (group.home / "cgroup.procs").write_text(pid)
        try:
            return group.path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def remove_abandoned() -> list[Path]:
    """Remove the groups whose makers have died and return where they were."""
    removed = []
    for version, home, parent in _parents():
        for path in sorted(parent.glob(own_name("*", maker="*"))):
            if is_abandoned(path.name):
                with suppress(OSError):  # another recorder was faster, or it is not ours
                    _remove(CpuGroup(path, version, home))
                    removed.append(path)
    return removed


def throttled_ns(pids: Iterable[int]) -> int | None:
    """Return for how long quotas held back the groups of these processes, in all.

    The growth since an earlier call is meaningful while no process changes its group. None
    where no cpu controller is mounted or the processes are gone.
    """
    folders = {folder for pid in pids for folder in _folders(pid)}
    counts = []
    for version, folder in folders:
        with suppress(OSError, KeyError):  # it has gone, or does not count
            counts.append(CpuGroup(folder, version, folder).throttled_ns())
    return sum(counts) if counts else None


def _folders(pid: int | str) -> list[tuple[int, Path]]:
    """Return (version, folder) of a process's group in each hierarchy that can limit CPU."""
    try:
        own = _groups(pid)
    except OSError:
        return []
    folders = []
    for version, root in _mounts():
        folder = root / own.get("cpu" if version == 1 else "", "/").lstrip("/")
        # In a container the mount may begin at the group that the path is counted from.
        folders.append((version, folder if folder.is_dir() else root))
    return folders


def _parents() -> list[tuple[int, Path, Path]]:
    """Return (version, own group, place for a new one) of all places, nearest first."""
    places = []
    for (version, here), (_, root) in zip(_folders("self"), _mounts(), strict=False):
        nearest = (here, here.parent, root) if here != root else (root,)
        places += [(version, here, place) for place in dict.fromkeys(nearest) if place.is_dir()]
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


def _groups(pid: int | str) -> dict[str, str]:
    """Return the path of a process's group for each controller; "" is version 2."""
    groups = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups
