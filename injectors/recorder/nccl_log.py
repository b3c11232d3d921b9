"""What NCCL says at its start: network, the path of each channel, variables that are set."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from cases.sanitize import scrub_text

TOLD = re.compile(
    r"NCCL INFO (Channel \d+.* via \S+|Using network \S+|NET/\w+ : No device found"
    r"|NCCL_(?:ALGO|PROTO|\w*CTAS|\w*NCHANNELS|\w*DISABLE|\w*ENABLE|CGA_CLUSTER_SIZE)"
    r" set by environment to \S+)"
)


def log_file(folder: Path) -> Path:
    """Return where the calling process's NCCL writes."""
    return folder / f"nccl-{os.getpid()}.log"


def variables(folder: Path) -> Mapping[str, str]:
    """Return the variables that make NCCL write what `lines` reads, alike for every job."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV",
        "NCCL_DEBUG_FILE": str(log_file(folder)),
    }


def read(folder: Path) -> list[str]:
    """Return what the calling process's NCCL has said so far; nothing where it was not used."""
    path = log_file(folder)
    return lines(path.read_text(errors="replace")) if path.exists() else []


def lines(text: str) -> list[str]:
    """Return the telling lines of NCCL's log, without process, host and address.

    Of the channels the first of each transport is kept.

    >>> lines("node3:17:42 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct")
    ['NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct']
    """
    told: dict[str, str] = {}
    for match in TOLD.finditer(text):
        line = scrub_text(match.group(0))
        told.setdefault(line.partition(" via ")[2] or line, line)
    return list(told.values())
