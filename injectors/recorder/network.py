"""A network of real interfaces: ranks in namespaces of their own, joined by a bridge.

The session process lives in a namespace of its own that holds the bridge; each rank, or all
ranks of one host together, is given one end of a veth pair as `eth0`. Namespaces and
interfaces vanish with the processes in them, so nothing is left behind however a recording
ends, `kill -9` included.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cases.errors import ScenarioError

CLONE_NEWNET = 0x40000000
INTERFACE = "eth0"
SUBNET = "10.77"
BURST_BYTES = 32 * 1024
QUEUE_MS = 200
PATIENCE_S = 10.0


def tools() -> dict[str, str]:
    """Return the environment for the system's network tools.

    They lie in folders that are not on every user's path, and rules of a namespace of our own
    need no lock that ordinary users can't take.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    return {**os.environ, "PATH": path, "XTABLES_LOCKFILE": "/dev/null"}


def enter_own_namespace() -> None:
    """Move the calling process into a new, empty network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise ScenarioError(f"a rank must be able to unshare its network ({reason})")


def enter_namespace_of(pid: int) -> None:
    """Move the calling process into the network namespace of `pid`, once that has its own."""
    own, other = Path("/proc/self/ns/net"), Path(f"/proc/{pid}/ns/net")
    deadline = time.monotonic() + PATIENCE_S
    while own.readlink() == other.readlink():
        if time.monotonic() > deadline:
            raise ScenarioError("the first rank of a host must enter a network of its own")
        time.sleep(0.01)
    libc = ctypes.CDLL(None, use_errno=True)
    with other.open() as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise ScenarioError(f"a rank must be able to join its host's network ({reason})")


def run(*command: str) -> None:
    """Run one configuration command; its complaint becomes the error."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env=tools()
    )
    if done.returncode:
        raise ScenarioError(f"{' '.join(command)} must succeed ({done.stderr.strip()})")


def within(pid: int, *command: str) -> None:
    """Run a command in the network namespace of process `pid`."""
    run("nsenter", "--net", f"--target={pid}", *command)


def bucket(rate_mbit_per_s: float) -> list[str]:
    """Return tc's words for a token bucket at the root of an interface."""
    rate = f"rate {int(rate_mbit_per_s * 1000)}kbit burst {BURST_BYTES} latency {QUEUE_MS}ms"
    return ["root", "tbf", *rate.split()]


def limited_path(address: str, rate_mbit_per_s: float) -> list[list[str]]:
    """Return tc's commands that limit what an interface sends to one address."""
    queued_bytes = int(rate_mbit_per_s * 1e6 / 8 * QUEUE_MS / 1e3)
    burst = f"burst {BURST_BYTES} cburst {BURST_BYTES}"
    commands = (
        f"tc qdisc replace dev {INTERFACE} root handle 1: htb",
        f"tc class replace dev {INTERFACE} parent 1: classid 1:1 htb"
        f" rate {int(rate_mbit_per_s * 1000)}kbit {burst}",
        f"tc qdisc replace dev {INTERFACE} parent 1:1 bfifo limit {queued_bytes}",
        f"tc filter replace dev {INTERFACE} parent 1: protocol ip prio 1"
        f" u32 match ip dst {address}/32 flowid 1:1",
    )
    return [command.split() for command in commands]


class Network:
    """The bridge of the calling process's namespace and the ranks joined to it.

    Args:
        places: Number of the interface of each rank; by default each has its own.
        rate_mbit_per_s: What every interface carries in each direction in a healthy job; by
            default as much as the machine can.
    """

    def __init__(
        self, places: Sequence[int] | None = None, rate_mbit_per_s: float | None = None
    ) -> None:
        self._places, self._rate = places, rate_mbit_per_s
        self._pids: dict[int, int] = {}
        self._generation = 0
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "br0", "up")

    def place(self, rank: int) -> int:
        """Return the number of a rank's interface."""
        return rank if self._places is None else self._places[rank]

    def leader(self, rank: int) -> int:
        """Return the first rank that has the same interface."""
        return next(other for other in range(rank + 1) if self.place(other) == self.place(rank))

    def join(self, pids: dict[int, int]) -> None:
        """Give the ranks (rank -> process in its namespace) their interfaces on the bridge.

        Each job has a subnet of its own; what shapes links acts on the job that joined last.
        """
        self._pids = {self.place(rank): pids[self.leader(rank)] for rank in pids}
        self._generation += 1
        for place, pid in self._pids.items():
            port = self.port(place)
            run(*f"ip link add {port} type veth peer name {INTERFACE} netns {pid}".split())
            run("ip", "link", "set", port, "master", "br0", "up")
            within(pid, "ip", "link", "set", "lo", "up")
            within(pid, "ip", "addr", "add", f"{self.address(place)}/24", "dev", INTERFACE)
            within(pid, "ip", "link", "set", INTERFACE, "up")
            if self._rate is not None:
                within(pid, "tc", "qdisc", "replace", "dev", INTERFACE, *bucket(self._rate))
                run("tc", "qdisc", "replace", "dev", port, *bucket(self._rate))

    def port(self, place: int) -> str:
        """Return the name of the bridge's end of an interface's link."""
        return f"p{self._generation}r{place}"

    def address(self, place: int) -> str:
        """Return the address of an interface."""
        return f"{SUBNET}.{self._generation}.{place + 1}"

    def pid(self, place: int) -> int:
        """Return a process in the namespace of an interface."""
        return self._pids[place]

    @contextmanager
    def shaped(self, rank: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit both directions of one rank's link by a token bucket, and lift it on exit."""
        with self.shaped_interface(self.place(rank), rate_mbit_per_s):
            yield

    @contextmanager
    def shaped_interface(self, place: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit all that an interface sends and receives by token buckets."""
        limit = bucket(rate_mbit_per_s)
        self._within(place, "tc", "qdisc", "replace", "dev", INTERFACE, *limit)
        try:
            run("tc", "qdisc", "replace", "dev", self.port(place), *limit)
            yield
        finally:
            self._restore(place)

    @contextmanager
    def shaped_path(self, first: int, second: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit what two interfaces send to each other, and nothing else that they send."""
        with ExitStack() as stack:
            for place, peer in ((first, second), (second, first)):
                root, *rest = limited_path(self.address(peer), rate_mbit_per_s)
                self._within(place, *root)
                stack.callback(self._restore, place)
                for command in rest:
                    self._within(place, *command)
            yield

    @contextmanager
    def lossy(self, rank: int, probability: float) -> Iterator[None]:
        """Drop packets at random, to and from one rank's interface."""
        lost = f"-m statistic --mode random --probability {probability:.6f} -j DROP".split()
        here = self.place(rank)
        rules = [(here, ["-i", INTERFACE, *lost])]
        others = [place for place in self._pids if place != here]
        rules += [(place, ["-s", self.address(here), *lost]) for place in others]
        with ExitStack() as stack:
            for place, rule in rules:
                self._within(place, "iptables", "-A", "INPUT", *rule)
                stack.callback(self._lifted, place, "iptables", "-D", "INPUT", *rule)
            yield

    def _restore(self, place: int) -> None:
        """Give an interface its healthy rate again."""
        verb, words = ("replace", bucket(self._rate)) if self._rate else ("del", ["root"])
        self._lifted(place, "tc", "qdisc", verb, "dev", INTERFACE, *words)
        command = ["tc", "qdisc", verb, "dev", self.port(place), *words]
        subprocess.run(command, capture_output=True, check=False, env=tools())

    def _within(self, place: int, *command: str) -> None:
        within(self._pids[place], *command)

    def _lifted(self, place: int, *command: str) -> None:
        """Undo a rule; where the rank has died, its interface and rules died with it."""
        try:
            self._within(place, *command)
        except ScenarioError:
            if Path(f"/proc/{self._pids[place]}/ns/net").exists():
                raise
