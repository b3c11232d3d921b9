"""Running one piece of work in a forked process and telling what became of it.

The process answers over one pipe and talks over another; both are read to their end while it
runs, and only a bounded part of each is kept.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.child import process
from harness.child.scratch import wipe

ANSWER_BYTES = 2**20
OUTPUT_BYTES = 2**16
Work = Callable[[int], None]


@dataclass
class Kept:
    """The first `limit` bytes of a pipe; the rest is read and dropped."""

    fd: int
    limit: int
    content: bytearray = field(default_factory=bytearray)
    overflowed: bool = False

    def drain(self) -> bool:
        """Read once; returns False at the end of the pipe."""
        chunk = os.read(self.fd, 2**16)
        room = self.limit - len(self.content)
        self.content += chunk[:room]
        self.overflowed |= len(chunk) > room
        return bool(chunk)


@dataclass(frozen=True)
class Ended:
    """How the process ended and what it left.

    `status` is the exit status, or minus the number of the signal that ended it; `clean` is
    False where something of it could not be removed.
    """

    answer: bytes
    answer_overflowed: bool
    output: str
    status: int
    seconds: float
    cpu_s: float
    peak_memory_bytes: int
    clean: bool


@dataclass(frozen=True)
class Room:
    """What a forked process may write to, and what it must not inherit."""

    scratch: Path
    writable: tuple[Path, ...]
    scratch_bytes: int
    private_fds: tuple[int, ...]


def run_forked(work: Work, room: Room, after: Callable[[], None] = lambda: None) -> Ended:
    """Fork, let the child do `work(answer_fd)`, and wait for all of it to be gone.

    Args:
        work: What the child does; it ends when this returns or raises.
        room: Folders it may write to. All are wiped before this function returns.
        after: Called when all processes are gone and the folders are still as they left them.
    """
    answer_in, answer_out = os.pipe()
    output_in, output_out = os.pipe()
    sys.stdout.flush()
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(work, room, answer_out, output_out, (answer_in, output_in))
    os.close(answer_out)
    os.close(output_out)
    answer, output = Kept(answer_in, ANSWER_BYTES), Kept(output_in, OUTPUT_BYTES)
    try:
        open_pipes = _drain_until_exit(pid, [answer, output])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - start
        more_cpu_s, clean = process.kill_descendants()
        for pipe in open_pipes:
            while clean and pipe.drain():
                pass
    finally:
        os.close(answer_in)
        os.close(output_in)
    after()
    return Ended(
        answer=bytes(answer.content),
        answer_overflowed=answer.overflowed,
        output=output.content.decode(errors="replace"),
        status=os.waitstatus_to_exitcode(status),
        seconds=seconds,
        cpu_s=usage.ru_utime + usage.ru_stime + more_cpu_s,
        peak_memory_bytes=usage.ru_maxrss * 1024,
        clean=clean and _wiped(room.writable),
    )


def _drain_until_exit(pid: int, pipes: Sequence[Kept]) -> list[Kept]:
    """Read the pipes until process `pid` has ended; returns those still open."""
    with selectors.DefaultSelector() as selector:
        exit_fd = os.pidfd_open(pid)
        try:
            selector.register(exit_fd, selectors.EVENT_READ)
            for pipe in pipes:
                selector.register(pipe.fd, selectors.EVENT_READ, pipe)
            still_open = list(pipes)
            while True:
                ready = [key for key, _ in selector.select()]
                for key in ready:
                    if key.data is not None and not key.data.drain():
                        selector.unregister(key.fd)
                        still_open.remove(key.data)
                if any(key.fd == exit_fd for key in ready):
                    return still_open
        finally:
            os.close(exit_fd)


def _wiped(folders: Sequence[Path]) -> bool:
    try:
        for folder in folders:
            wipe(folder)
    except (OSError, RecursionError):
        return False
    return True


def _be_child(
    work: Work, room: Room, answer_out: int, output_out: int, parents_fds: tuple[int, ...]
) -> None:
    """Become the child: never returns."""
    status = 1
    try:
        process.die_with_parent()
        process.allow_inspection(True)
        for fd in (*parents_fds, *room.private_fds):
            os.close(fd)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (output_out, 1), (output_out, 2)):
            os.dup2(source, target)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (room.scratch_bytes, room.scratch_bytes))
        os.chdir(room.scratch)
        me = os.getpid()
        work(answer_out)
        status = 0 if os.getpid() == me else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace")[-OUTPUT_BYTES:])
    finally:
        os._exit(status)
