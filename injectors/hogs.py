"""Programs that compete for the host: for its cores, memory, network or GPU.

They are plain processes with ordinary names; neither their command line nor what they import
tells what they are for. They die with the process that started them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from cases.errors import ScenarioError

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
CLONE_NEWNET = 0x40000000
AGENTS = ("node-exporter", "metrics-agent", "health-probe")
PROGRAM_NAMES = ("indexer", "backup-agent", "log-shipper", "updater")
NAMES = (*PROGRAM_NAMES, *AGENTS)
STREAM_MEGABYTES = 128
DEVICE_MATRIX = 4096
SEND_BUFFER_BYTES = 256 * 1024

# Kinds that print a line when they are at work.
ANNOUNCED = frozenset({"device", "receive", "send"})
# Read from standard input, so that the command line is the same for all.
PROGRAMS: dict[str, str] = {
    "busy": "while True:\n    sum(range(20000))\n",
    "memory": (
        "import numpy\n"
        f"a = numpy.zeros({STREAM_MEGABYTES} * 2**17)\n"
        "b = numpy.ones_like(a)\n"
        "while True:\n"
        "    numpy.add(a, b, out=a)\n"
    ),
    # What an agent collects of each process; the files of a process may vanish any time.
    "poll": (
        "import os\n"
        "parts = 'stat', 'status', 'statm', 'io', 'schedstat', 'smaps_rollup'\n"
        "while True:\n"
        "    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "        for part in parts:\n"
        "            try:\n"
        "                with open(f'/proc/{pid}/{part}') as file: file.read()\n"
        "            except OSError: pass\n"
    ),
    # One product at a time, so that it stops with the process.
    "device": (
        "import os, torch\n"
        "device = torch.device('cuda', int(os.environ['DEVICE']))\n"
        f"a = torch.randn({DEVICE_MATRIX}, {DEVICE_MATRIX}, device=device)\n"
        "def product():\n"
        "    torch.mm(a, a)\n"
        "    torch.cuda.synchronize(device)\n"
        "product()\n"
        "print(flush=True)\n"
        "while True: product()\n"
    ),
    "receive": (
        "import os, socket, threading\n"
        "def drain(connection):\n"
        "    room = bytearray(1 << 18)\n"
        "    while connection.recv_into(room): pass\n"
        "server = socket.create_server(('', int(os.environ['PORT'])))\n"
        "print(flush=True)\n"
        "while True:\n"
        "    threading.Thread(target=drain, args=server.accept()[:1], daemon=True).start()\n"
    ),
    "send": (
        "import os, socket\n"
        "peer = os.environ['PEER'], int(os.environ['PORT'])\n"
        "connection = socket.create_connection(peer)\n"
        f"connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {SEND_BUFFER_BYTES})\n"
        "block = bytes(1 << 16)\n"
        "print(flush=True)\n"
        "while True: connection.sendall(block)\n"
    ),
}


@dataclass(frozen=True)
class Place:
    """Where a competitor runs.

    Attributes:
        nice: Nice value, 0 to 19.
        cores: CPUs that it may run on; None: all.
        network_of: A process whose network namespace it joins; None: its parent's.
        environment: Further variables.
    """

    nice: int = 0
    cores: Iterable[int] | None = None
    network_of: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


ANYWHERE = Place()


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
    kind: str, count: int, place: Place = ANYWHERE, *, names: Sequence[str] = PROGRAM_NAMES
) -> Hog:
    """Start `count` competitors.

    Args:
        kind: `busy` keeps a core computing, `memory` streams through arrays beyond the cache,
            `poll` reads what /proc says of every process over and over, `device` multiplies
            matrices on a GPU, `send` sends to a `receive`.
        count: How many processes.
        place: Where they run.
        names: Command names, given out in turn.

    Raises:
        ScenarioError: One of a kind that says when it is ready ended before that.
    """
    if kind not in PROGRAMS:
        raise ValueError(f"kind must be one of {sorted(PROGRAMS)}, got {kind!r}")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(count):  # one by one, so that a failure can end those before it
            processes.append(_start(kind, place, names[number % len(names)]))  # noqa: PERF401
        for process in processes if kind in ANNOUNCED else ():
            _await_ready(process, kind)
    except BaseException:
        Hog(processes).stop()
        raise
    return Hog(processes)


def _await_ready(process: subprocess.Popen[bytes], kind: str) -> None:
    assert process.stdout is not None
    with process.stdout as stdout:
        if not stdout.readline():
            raise ScenarioError(f"a competitor of kind {kind} must start", found="it ended")


def _start(kind: str, place: Place, name: str) -> subprocess.Popen[bytes]:
    with ExitStack() as stack:
        network = None
        if place.network_of is not None:
            network = stack.enter_context(Path(f"/proc/{place.network_of}/ns/net").open())
        process = subprocess.Popen(
            [name, "-"],
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if kind in ANNOUNCED else subprocess.DEVNULL,
            preexec_fn=_settle(place, network.fileno() if network else None),
            env={
                "PATH": os.environ.get("PATH", ""),
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                **place.environment,
            },
        )
    # The name in /proc/PID/comm is set by the process itself: exec resets it.
    rename = f"import ctypes\nctypes.CDLL(None).prctl({PR_SET_NAME}, {name.encode()!r})\n"
    assert process.stdin is not None
    process.stdin.write((rename + PROGRAMS[kind]).encode())
    process.stdin.close()
    return process


def _settle(place: Place, network: int | None) -> Callable[[], None]:
    """Return what a new process does first: tie its life to ours and go to its place."""
    cores = None if place.cores is None else set(place.cores)
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)

    def settle() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
        if network is not None and libc.setns(network, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "a competitor must be able to join a network")
        os.nice(place.nice)
        if cores is not None:
            os.sched_setaffinity(0, cores)

    return settle
