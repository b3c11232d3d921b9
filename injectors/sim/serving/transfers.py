"""Keys and values on their way from a prefill engine to a decode engine.

Each engine's host sends and receives one transfer at a time, at the rate that the slower of the
two ends and the path between them leave.
"""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.job import ONE, Job
from injectors.sim.serving.request import Request

SETUP_NS = 300_000  # handshake and descriptors of one transfer
NS_PER_S = 10**9


@dataclass(frozen=True)
class Transfer:
    """One request's keys and values; engines by number, times in ns."""

    request: Request
    source: int
    target: int
    start_ns: int
    end_ns: int
    bytes: int


class Paths:
    """Hands out the ways between engines' hosts."""

    def __init__(self, job: Job, bytes_per_token: int) -> None:
        self._job, self._bytes_per_token = job, bytes_per_token
        self._free_ns: dict[tuple[str, int], int] = {}
        self.done: list[Transfer] = []

    def send(self, request: Request, source: int, target: int, now_ns: int) -> Transfer:
        """Send what a request's prompt left, as soon as both ends are free."""
        size = request.prompt_tokens * self._bytes_per_token
        ends = ("from", source), ("to", target)
        begin = max(now_ns, *(self._free_ns.get(end, 0) for end in ends))
        took = SETUP_NS + size * NS_PER_S // self.rate(source, target)
        took += 2 * self._latency_ns(source, target)
        found = Transfer(request, source, target, begin, begin + took, size)
        self._free_ns.update(dict.fromkeys(ends, found.end_ns))
        self.done.append(found)
        return found

    def rate(self, source: int, target: int) -> int:
        """Bytes a second between two hosts, at least 1."""
        network = self._job.network
        pair = min(source, target), max(source, target)
        share_q16 = min(
            network.link_q16.get(pair, ONE),
            network.nic_q16.get(source, ONE),
            network.nic_q16.get(target, ONE),
            network.pause_storm_q16,
        )
        return max(self._job.serving.transfer_bytes_per_s * share_q16 >> 16, 1)

    def _latency_ns(self, source: int, target: int) -> int:
        pair = min(source, target), max(source, target)
        return self._job.machine.nic_latency_ns + self._job.network.latency_ns.get(pair, 0)
