"""What a recorder does to processes: hold them back, or let others take what they use.

All are context managers that undo themselves. What a killed recorder can't undo ends with its
processes, a control group excepted (see injectors.leftovers).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from injectors import hogs
from injectors.cgroups import cpu_group
from injectors.recorder.network import Network

PORT = 5201  # the first of those that traffic is received at


@contextmanager
def quota(pids: Iterable[int], cores: float) -> Iterator[None]:
    """Hold some processes and their children together to `cores` CPU seconds per second."""
    with cpu_group("job") as group:
        for pid in pids:
            for member in (pid, *children(pid)):
                with suppress(ProcessLookupError):
                    group.add(member)
        group.limit(cores)
        yield


def children(pid: int) -> list[int]:
    """Return the children of a process's main thread, oldest first."""
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextmanager
def suspended(pid: int, stopped_fraction: float, period_s: float) -> Iterator[None]:
    """Stop a process for a part of every period."""

    def tell(number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # whoever waits for it will notice
            os.kill(pid, number)

    go, stop = (lambda: tell(signal.SIGCONT)), (lambda: tell(signal.SIGSTOP))
    with alternating(go, 1 - stopped_fraction, stop, period_s):
        yield


@contextmanager
def alternating(
    begin: Callable[[], None], share: float, end: Callable[[], None], period_s: float
) -> Iterator[None]:
    """Let something that is under way be so for a `share` of every period, and at the end."""
    over = threading.Event()

    def cycle() -> None:
        while not over.wait(period_s * share):
            end()
            if over.wait(period_s * (1 - share)):
                break
            begin()

    thread = threading.Thread(target=cycle, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        begin()


@dataclass(frozen=True)
class Flows:
    """What another program sends: from one interface to another, in `count` TCP flows."""

    source: int
    target: int
    count: int
    port: int


def traffic(
    network: Network, flows: Flows, cores: Iterable[int], name: str
) -> tuple[hogs.Hog, hogs.Hog]:
    """Start a program that sends, and one that receives; both are called `name`.

    Returns (senders, receiver). They send until they are paused.
    """
    peer = {"PEER": network.address(flows.target), "PORT": str(flows.port)}
    there = hogs.Place(cores=cores, network_of=network.pid(flows.target), environment=peer)
    receiver = hogs.start("receive", 1, there, names=[name])
    try:
        here = hogs.Place(cores=cores, network_of=network.pid(flows.source), environment=peer)
        return hogs.start("send", flows.count, here, names=[name]), receiver
    except BaseException:
        receiver.stop()
        raise
