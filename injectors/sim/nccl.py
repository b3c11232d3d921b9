"""What a collective costs: NCCL's own tuning model, and the choice that it would make.

    t = latency + bytes / bandwidth, of the fastest algorithm and protocol

Small collectives of real jobs take longer than the model says because ranks come apart; here too
that comes from when they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from injectors.sim import nccl_tuning as tuning
from injectors.sim.costs import rate_ns
from injectors.sim.job import ONE, Network, Places
from injectors.sim.machine import Machine

Operation = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "recv"
]


@dataclass(frozen=True)
class Shape:
    """How a group lies: `ranks` on `hosts` hosts, at most `per_host` of them on one."""

    ranks: int
    hosts: int
    per_host: int

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]], places: Places) -> Shape:
        """Return the shape of the group that spans most hosts."""
        shapes = []
        for group in groups:
            hosts = [places.host(rank) for rank in group]
            most = max(hosts.count(host) for host in set(hosts))
            shapes.append(cls(len(group), len(set(hosts)), most))
        return max(shapes, key=lambda shape: (shape.hosts, shape.ranks))


@dataclass(frozen=True)
class Choice:
    """One way to do a collective: time is `fixed_ns` + `bytes_ns`, the second on nominal links."""

    algorithm: str
    protocol: str
    fixed_ns: int
    bytes_ns: int

    @property
    def total_ns(self) -> int:
        """Time once all members are there."""
        return self.fixed_ns + self.bytes_ns


class Nccl:
    """NCCL on GPUs of one machine and network."""

    def __init__(self, machine: Machine, network: Network) -> None:
        if machine.gpu is None:
            raise ValueError("machine must have GPUs for NCCL, got none")
        self.machine = machine
        self.network = network
        self.gpu = machine.gpu

    def choose(self, operation: Operation, bytes_moved: int, shape: Shape) -> Choice:
        """Return the fastest way that the settings allow.

        Args:
            operation: What is done.
            bytes_moved: The whole tensor: of an all-gather what comes out, of a reduce-scatter
                what goes in, of an all-to-all what one rank gives to all.
            shape: Of the group.
        """
        if shape.ranks < 2:
            return Choice("Ring", "Simple", self.gpu_copy_ns(bytes_moved), 0)
        ways = [*self._ways(operation, bytes_moved, shape)]
        return min(ways, key=lambda way: way.total_ns)

    def gpu_copy_ns(self, bytes_moved: int) -> int:
        """What a group of one does: it copies."""
        return 2_000 + rate_ns(2 * bytes_moved, self.gpu.memory_bytes_per_s)

    def bus(self, shape: Shape) -> int:
        """Bytes per second that each rank gives to its neighbours in a ring.

        On one host these are its links; between hosts all interfaces of a host carry one ring
        each, so that ranks of a host share them.
        """
        inner = self._inner()
        if shape.hosts == 1:
            return inner
        outer = shape.per_host * self._interface(shape)
        return min(inner, outer) if shape.per_host > 1 else outer

    def _inner(self) -> int:
        """Within a host; fewer channels than NCCL's own choice carry less, more carry no more."""
        if not self.network.peer_access:
            return self.gpu.pcie_bytes_per_s * tuning.HOST_MEMORY_Q16 >> 16
        rate = self.gpu.nvlink_bytes_per_s * tuning.NVLINK_Q16[self.gpu.kernels] >> 16
        return rate * min(self.network.channels_q16, ONE) >> 16

    def _interface(self, shape: Shape) -> int:
        if self.network.transport == "socket":
            return min(
                self.machine.nic_bytes_per_s,
                tuning.SOCKET_RANK_BYTES_PER_S,
                tuning.SOCKET_HOST_BYTES_PER_S // shape.per_host,
            )
        rate = self.machine.nic_bytes_per_s * tuning.NETWORK_Q16 >> 16
        return rate * min(self.network.channels_q16, ONE) >> 16

    def _hop_ns(self) -> int:
        extra = {"ib": 0, "roce": tuning.ROCE_HOP_NS, "socket": tuning.SOCKET_HOP_NS}
        return extra[self.network.transport]

    def _ways(self, operation: Operation, size: int, shape: Shape) -> Iterator[Choice]:
        if operation in ("send", "recv"):
            yield self._point(size, shape)
        elif operation == "all_to_all":
            yield self._all_to_all(size, shape)
        elif operation == "all_reduce":
            yield from self._all_reduce(size, shape)
        else:
            yield from self._rings(size, shape, half=True)

    def _all_reduce(self, size: int, shape: Shape) -> Iterator[Choice]:
        if self.network.algorithm != "Tree":
            yield from self._rings(size, shape, half=False)
        if self.network.algorithm != "Ring" and (shape.hosts > 1 or self.network.algorithm):
            yield from self._trees(size, shape)
        if self._has_nvls(shape):
            yield self._nvls(size, shape)

    def _protocols(self) -> Iterator[tuple[int, str]]:
        wanted = self.network.protocol
        return ((i, name) for i, name in enumerate(tuning.PROTOCOLS) if wanted in ("", name))

    def _rings(self, size: int, shape: Shape, half: bool) -> Iterator[Choice]:
        """A ring; an all-gather, reduce-scatter or broadcast goes round once, not twice."""
        steps, inter = shape.ranks - 1, (shape.hosts - 1 if shape.hosts > 1 else 0)
        rounds = 1 if half else 2
        inner = tuning.RING_NVLINK if self.network.peer_access else tuning.RING_PCIE
        for i, protocol in self._protocols():
            hops = (steps - inter) * inner[i] + inter * (tuning.RING_NET[i] + self._hop_ns())
            bandwidth = self._capped(shape, protocol, tuning.RING_SHARE_Q16[protocol])
            bytes_ns = rate_ns(size * rounds * steps, bandwidth * shape.ranks)
            yield Choice("Ring", protocol, tuning.RING_BASE[i] + rounds * hops, bytes_ns)

    def _trees(self, size: int, shape: Shape) -> Iterator[Choice]:
        levels = (shape.hosts - 1).bit_length()
        inner = tuning.TREE_NVLINK if self.network.peer_access else tuning.TREE_PCIE
        for i, protocol in self._protocols():
            chain = (shape.per_host - 1) * inner[i] + levels * (tuning.TREE_NET[i] + self._hop_ns())
            bandwidth = self._capped(shape, protocol, tuning.TREE_SHARE_Q16[protocol])
            yield Choice(
                "Tree", protocol, tuning.TREE_BASE[i] + 2 * chain, rate_ns(2 * size, bandwidth)
            )

    def _capped(self, shape: Shape, protocol: str, share_q16: int) -> int:
        """Bandwidth of a protocol; LL, whose every word carries a flag, has a limit of its own."""
        bandwidth = self.bus(shape) * share_q16 >> 16
        if protocol != "LL":
            return bandwidth
        return min(
            bandwidth, tuning.LL_CAP[self.gpu.kernels] if shape.hosts == 1 else tuning.LL_CAP_HOSTS
        )

    def _has_nvls(self, shape: Shape) -> bool:
        """Reduction in the switch: Hopper, one host, most of its ranks, direct access."""
        settings = self.network
        free = settings.algorithm == "" and settings.protocol in ("", "Simple")
        fits = shape.hosts == 1 and shape.ranks > 2
        return free and fits and settings.peer_access and self.gpu.kernels == "sm90"

    def _nvls(self, size: int, shape: Shape) -> Choice:
        bandwidth = self._inner() * tuning.NVLS_Q16 >> 16
        bytes_ns = rate_ns(size * shape.ranks, bandwidth * (shape.ranks - 1))
        return Choice("NVLS", "Simple", tuning.NVLS_NS, bytes_ns)

    def _point(self, size: int, shape: Shape) -> Choice:
        if shape.hosts > 1:
            base = tuning.RING_BASE[2] + tuning.RING_NET[2] + self._hop_ns()
            return Choice("Ring", "Simple", base, rate_ns(size, self._interface(shape)))
        return Choice(
            "Ring", "Simple", tuning.RING_BASE[2], rate_ns(size, self._inner(), tuning.POINT_Q16)
        )

    def _all_to_all(self, size: int, shape: Shape) -> Choice:
        """Each rank sends an even part to every other: within the host and out of it at once."""
        within = size * (shape.per_host - 1) // shape.ranks
        beyond = size * (shape.ranks - shape.per_host) // shape.ranks
        inner_ns = rate_ns(within, self._inner(), tuning.POINT_Q16)
        outer_ns = rate_ns(beyond, self._interface(shape)) if beyond else 0
        hop = tuning.RING_NET[2] + self._hop_ns() if shape.hosts > 1 else tuning.RING_NVLINK[2]
        fixed = tuning.RING_BASE[2] + hop + (shape.ranks - 1) * tuning.PEER_NS
        return Choice("Ring", "Simple", fixed, max(inner_ns, outer_ns))
