"""Trying to reach what a diagnoser must not reach, from where a diagnoser runs."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAIT_S = 0.5


def report(probe: dict[str, Any], answer_fd: int) -> None:
    """Write a JSON object: name of an attempt -> whether it got through."""
    reached = {
        **{name: _any(_readable, paths) for name, paths in probe["files"].items()},
        **{name: _is(*who) and _looks_into(who[0]) for name, who in probe["processes"].items()},
        "zygote": _looks_into(os.getppid()),
        "network": _connects(probe["listener"]) or _has_interface(),
    }
    os.write(answer_fd, json.dumps(reached).encode())


def _any(attempt: Callable[[str], bool], targets: list[str]) -> bool:
    return any(attempt(target) for target in targets)


def _readable(path: str) -> bool:
    """Whether a file can be read, or a folder listed and found to hold something."""
    try:
        target = Path(path)
        return bool([*target.iterdir()] if target.is_dir() else target.read_bytes()[:1])
    except OSError:
        return False


def _is(pid: int, started: int) -> bool:
    """Whether `pid` is that process here too, and not another one in its own namespace."""
    return start_time(pid) == started


def start_time(pid: int) -> int | None:
    """Clock ticks from the machine's start to the process's; None if it cannot be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _looks_into(pid: int) -> bool:
    """Whether another process's memory or environment can be read."""
    try:
        Path(f"/proc/{pid}/environ").read_bytes()
        return True
    except OSError:
        pass
    try:
        with Path(f"/proc/{pid}/maps").open() as maps:
            start = int(maps.readline().split("-")[0], 16)
        with Path(f"/proc/{pid}/mem").open("rb") as memory:
            memory.seek(start)
            return bool(memory.read(1))
    except (OSError, ValueError):
        return False


def _connects(address: list[Any]) -> bool:
    """Whether the harness's own listener on the loopback interface answers."""
    try:
        with socket.create_connection((address[0], address[1]), timeout=WAIT_S):
            return True
    except OSError:
        return False


def _has_interface() -> bool:
    """Whether there is any interface but the loopback one."""
    return any(name != "lo" for _, name in socket.if_nameindex())
