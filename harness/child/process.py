"""The Linux calls that Python lacks: who inherits orphans, who may look into a process."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that forked it ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def allow_inspection(allowed: bool) -> None:
    """Let processes of the same user read this one's memory and open files, or not."""
    _prctl(PR_SET_DUMPABLE, int(allowed))


def children(pid: int) -> list[int]:
    """Return the process ids of the children of `pid`; empty when it has ended."""
    found: list[int] = []
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended, perhaps while it was listed
        return []
    for thread in threads:
        try:
            found += [int(text) for text in (thread / "children").read_text().split()]
        except OSError:  # a thread or the process ended meanwhile
            continue
    return found


def descendants(pid: int) -> list[int]:
    """Return the process ids below `pid`, parents before children."""
    found, todo = [], [pid]
    while todo:
        below = children(todo.pop())
        found += below
        todo += below
    return found


def kill_descendants(within_s: float = 5.0) -> tuple[float, bool]:
    """Kill and reap everything below this process, which must have adopted its orphans.

    Returns:
        The processor seconds of what was reaped, and whether nothing is left.
    """
    cpu_s, end = 0.0, time.monotonic() + within_s
    while time.monotonic() < end:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu_s, True
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
        else:
            time.sleep(0.001)
    return cpu_s, False
