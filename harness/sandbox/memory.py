"""How much memory a set of processes uses."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def tree_memory(pids: Iterable[int], limit_bytes: int) -> int:
    """Return the resident bytes of all `pids` together.

    Resident sizes count a page once for each process that shares it, which forked processes
    do; so above the limit the exact but slower proportional sizes are asked for.
    """
    pids = list(pids)
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= limit_bytes else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):  # it has ended
        return 0


def _proportional(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:  # it has ended, or may not be looked into
        pass
    return _resident(pid)
