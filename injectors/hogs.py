"""Programs that compete for the host: a busy loop and a stream through memory.

They are plain processes with ordinary names; neither their command line nor what they import
tells what they are for. They die with the process that started them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

Kind = Literal["busy", "memory"]
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
NAMES = ("indexer", "backup-agent", "log-shipper", "updater")
STREAM_MEGABYTES = 128

# Read from standard input, so that the command line is the same for both.
PROGRAMS: dict[str, str] = {
    "busy": "while True:\n    sum(range(20000))\n",
    "memory": (
        "import numpy\n"
        f"a = numpy.zeros({STREAM_MEGABYTES} * 2**17)\n"
        "b = numpy.ones_like(a)\n"
        "while True:\n"
        "    numpy.add(a, b, out=a)\n"
    ),
}


class Hog:
    """Running competitors of one kind."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self._processes = processes

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids, in order of start."""
        return tuple(process.pid for process in self._processes)

    def pause(self) -> None:
        """Stop them where they are; they use no CPU until resumed."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End them and wait until they are gone."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)


def start(
    kind: str,
    count: int,
    *,
    nice: int = 0,
    cores: Iterable[int] | None = None,
    names: Sequence[str] = NAMES,
) -> Hog:
    """Start `count` competitors.

    Args:
        kind: `busy` keeps a core computing, `memory` streams through arrays beyond the cache.
        count: How many processes.
        nice: Their nice value, 0 to 19.
        cores: CPUs that they may run on; all by default.
        names: Command names, given out in turn.
    """
    if kind not in PROGRAMS:
        raise ValueError(f"kind must be one of {sorted(PROGRAMS)}, got {kind!r}")
    allowed = None if cores is None else set(cores)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(count):  # one by one, so that a failure can end those before it
            processes.append(_start(PROGRAMS[kind], nice, allowed, names[number % len(names)]))  # noqa: PERF401
    except BaseException:
        Hog(processes).stop()
        raise
    return Hog(processes)


def _start(program: str, nice: int, cores: set[int] | None, name: str) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
        os.nice(nice)
        if cores is not None:
            os.sched_setaffinity(0, cores)

    process = subprocess.Popen(
        [name, "-"],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=prepare,
        env={
            "PATH": os.environ.get("PATH", ""),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    # The name in /proc/PID/comm is set by the process itself: exec resets it.
    rename = f"import ctypes\nctypes.CDLL(None).prctl({PR_SET_NAME}, {name.encode()!r})\n"
    assert process.stdin is not None
    process.stdin.write((rename + program).encode())
    process.stdin.close()
    return process
