"""A network of real interfaces: every rank in its own namespace, joined by a bridge.

The session process lives in a namespace of its own that holds the bridge; each rank is given
one end of a veth pair as `eth0`. Namespaces and interfaces vanish with the processes in
them, so nothing is left behind however a recording ends, `kill -9` included.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from cases.errors import ScenarioError

CLONE_NEWNET = 0x40000000
INTERFACE = "eth0"
SUBNET = "10.77"
BURST_BYTES = 32 * 1024
QUEUE_MS = 200


def enter_own_namespace() -> None:
    """Move the calling process into a new, empty network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise ScenarioError(f"a rank must be able to unshare its network ({reason})")


def run(*command: str) -> None:
    """Run one configuration command; its complaint becomes the error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise ScenarioError(f"{' '.join(command)} must succeed ({done.stderr.strip()})")


def within(pid: int, *command: str) -> None:
    """Run a command in the network namespace of process `pid`."""
    run("nsenter", "--net", f"--target={pid}", *command)


class Network:
    """The bridge of the calling process's namespace and the ranks joined to it."""

    def __init__(self) -> None:
        self._pids: dict[int, int] = {}
        self._generation = 0
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "br0", "up")

    def join(self, pids: dict[int, int]) -> None:
        """Give each rank (rank -> process in its own namespace) an interface on the bridge.

        Each job has a subnet of its own; `shaped` acts on the job that joined last.
        """
        self._pids = dict(pids)
        self._generation += 1
        for rank, pid in pids.items():
            port = self.port(rank)
            run(*f"ip link add {port} type veth peer name {INTERFACE} netns {pid}".split())
            run("ip", "link", "set", port, "master", "br0", "up")
            within(pid, "ip", "link", "set", "lo", "up")
            within(
                pid,
                "ip",
                "addr",
                "add",
                f"{SUBNET}.{self._generation}.{rank + 1}/24",
                "dev",
                INTERFACE,
            )
            within(pid, "ip", "link", "set", INTERFACE, "up")

    def port(self, rank: int) -> str:
        """Return the name of the bridge's end of a rank's link."""
        return f"p{self._generation}r{rank}"

    @contextmanager
    def shaped(self, rank: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit both directions of one rank's link by a token bucket, and lift it on exit."""
        bucket = (
            f"root tbf rate {int(rate_mbit_per_s * 1000)}kbit burst {BURST_BYTES}"
            f" latency {QUEUE_MS}ms"
        ).split()
        pid = self._pids[rank]
        within(pid, "tc", "qdisc", "replace", "dev", INTERFACE, *bucket)
        try:
            run("tc", "qdisc", "replace", "dev", self.port(rank), *bucket)
            yield
        finally:
            within(pid, "tc", "qdisc", "del", "dev", INTERFACE, "root")
            subprocess.run(
                ["tc", "qdisc", "del", "dev", self.port(rank), "root"],
                capture_output=True,
                check=False,
            )
