"""How much longer transfers take than on links as they should be, group by group and step by step.

Which groups a transfer row has follows from the ops that use it. A group within a host takes as
long as its slowest member's NVLinks; one between hosts as long as the slowest of the paths that
its ring crosses, or of the links within hosts if those are slower:

    factor = nominal / min(links within hosts, interfaces * share of the slowest path)

TCP that loses packets carries MSS / RTT * sqrt(3 / 2p) (Mathis et al., 1997); InfiniBand and RoCE
send again all that is on its way, which leaves 1 / (1 + p * packets on the way).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.nccl import Nccl, Shape
from injectors.sim.program import Ints, Kind, Op, Program
from injectors.sim.spine import Spine

SEGMENT_BYTES, PACKET_BYTES = 1_448, 4_096  # of TCP, of InfiniBand
HOST_RTT_NS = 50_000  # both hosts' share of TCP's round trip
CONNECTIONS = 4  # of a rank to a peer over sockets
NATURAL_Q16 = 983  # the network is up to 1.5 % slower now and then


@dataclass(frozen=True)
class Group:
    """Ranks that exchange something with each other.

    Attributes:
        ranks: Its members.
        all_pairs: Whether each sends to each, rather than round a ring.
        rounds: How often a ring is gone round.
    """

    ranks: tuple[int, ...]
    all_pairs: bool
    rounds: int


@dataclass(frozen=True)
class _Row:
    """Groups of one transfer row, (groups,) each, and their members one after the other."""

    nominal: Ints  # bytes/s
    inner: Ints
    outer: Ints
    crosses: Ints  # 1 for a group between hosts
    added_ns: Ints
    members: Ints
    group_of: Ints


class Transfers:
    """Factors of all transfer rows of a program."""

    def __init__(self, job: Job, program: Program) -> None:
        self._job, self._ranks = job, program.ranks
        self._paths = _Paths(job)
        self._rows = [
            self._row(list(_groups(program, number)))
            for number in range(len(program.transfer_rows))
        ]
        names = enumerate(program.transfer_rows)
        self._keys = [noise.key(job.seed, "network", name) for _, name in names]
        self._spine = Spine(job.network.background, job.machine.nic_bytes_per_s, job.seed)

    def added_ns(self) -> Ints:
        """What latency adds to a transfer, (rows, ranks)."""
        found = np.zeros((len(self._rows), self._ranks), np.int64)
        for row, values in zip(self._rows, found, strict=True):
            np.maximum.at(values, row.members, row.added_ns[row.group_of])
        return found

    def factors_q16(self, step: int, begin_ns: int, end_ns: int) -> Ints:
        """Return how much longer transfers take, (rows, ranks), in a step between two times."""
        share = self._spine.share_q16(begin_ns, end_ns)
        found = np.full((len(self._rows), self._ranks), ONE, np.int64)
        for row, key, values in zip(self._rows, self._keys, found, strict=True):
            left = np.where(row.crosses > 0, share, ONE)
            speed = np.minimum(row.inner, row.outer * left >> 16)
            factor = row.nominal * ONE // np.maximum(speed, 1)
            draw = noise.extend(key, step, np.arange(len(factor)))
            factor += row.crosses * (noise.uniform_q16(draw) * NATURAL_Q16 >> 16)
            np.maximum.at(values, row.members, factor[row.group_of])
        return found

    def _row(self, groups: list[Group]) -> _Row:
        found = [self._paths.of(group) for group in groups]
        nominal, inner, outer, crosses, added = np.array(found, np.int64).reshape(-1, 5).T
        members = np.array([rank for group in groups for rank in group.ranks], np.int64)
        group_of = np.repeat(np.arange(len(groups)), [len(group.ranks) for group in groups])
        return _Row(nominal, inner, outer, crosses, added, members, group_of)


def _groups(program: Program, row: int) -> Iterator[Group]:
    """Yield the groups that use a transfer row, each once."""
    seen: set[Group] = set()
    for op in program.ops:
        if op.kind not in (Kind.COLLECTIVE, Kind.SEND, Kind.RECV) or op.transfer != row:
            continue
        for ranks in _members(program, op):
            group = Group(ranks, *_pattern(op))
            if group not in seen:
                seen.add(group)
                yield group


def _members(program: Program, op: Op) -> Iterator[tuple[int, ...]]:
    everybody = range(program.ranks) if op.ranks is None else op.ranks
    if op.kind == Kind.COLLECTIVE:
        asked = set(everybody)
        yield from (tuple(g) for g in program.groups[op.groups] if asked.issuperset(g))
    else:
        yield from ((min(p), max(p)) for p in zip(everybody, op.peers, strict=True))


def _pattern(op: Op) -> tuple[bool, int]:
    name = op.label.collective.op.replace("_", "") if op.label.collective else "allreduce"
    return name.startswith(("alltoall", "send", "recv")), 2 if name.startswith("allreduce") else 1


class _Paths:
    """What the ways between ranks carry."""

    def __init__(self, job: Job) -> None:
        self._job, self._network, self._places = job, job.network, job.places
        self._nccl = Nccl(job.machine, job.network) if job.machine.gpu else None

    def of(self, group: Group) -> tuple[int, int, int, int, int]:
        """Return nominal, inner and outer bytes/s, whether hosts are crossed, and added ns."""
        hosts = [self._places.host(rank) for rank in group.ranks]
        per_host = max(hosts.count(host) for host in set(hosts))
        shape = Shape(len(group.ranks), len(set(hosts)), per_host)
        inner, outer, nominal = self._nominal(shape)
        inner = inner * self._links_q16(group.ranks) >> 16
        if shape.hosts == 1:
            return nominal, min(inner, nominal), nominal, 0, 0
        pairs = _pairs(sorted(set(hosts)), group.all_pairs)
        outer = outer * self._share_q16(group, pairs, outer // per_host) >> 16
        if per_host == 1:
            inner = nominal  # nothing of it stays within a host
        latencies = [self._network.latency_ns.get(pair, 0) for pair in pairs]
        added = max(latencies) if group.all_pairs else group.rounds * sum(latencies)
        return nominal, inner, outer, 1, added

    def _nominal(self, shape: Shape) -> tuple[int, int, int]:
        if self._nccl is None:
            rate = self._job.machine.nic_bytes_per_s
            return rate, rate, rate
        inner = self._nccl.bus(Shape(shape.ranks, 1, shape.ranks))
        nominal = self._nccl.bus(shape)
        if shape.hosts == 1 or nominal < inner or shape.per_host == 1:
            return inner, nominal, nominal
        return inner, max(shape.per_host * self._nccl.bus(Shape(2, 2, 1)), nominal), nominal

    def _links_q16(self, ranks: Sequence[int]) -> int:
        """Share of the links within hosts that the worst member has; over PCIe it is small."""
        gpu = self._job.machine.gpu
        if gpu is None or not self._network.peer_access:
            return ONE
        over_pcie = gpu.pcie_bytes_per_s * ONE // gpu.nvlink_bytes_per_s
        given = (self._network.nvlink_q16.get(rank, ONE) for rank in ranks)
        return min(share or over_pcie for share in given)

    def _share_q16(self, group: Group, pairs: Sequence[tuple[int, int]], lane: int) -> int:
        """Share of the interfaces' rate that the slowest path leaves; a lane is one of them."""
        network, hosts = self._network, {host for pair in pairs for host in pair}
        share = min(network.nic_q16.get(host, ONE) for host in hosts)
        # In an all-to-all a path carries what goes between two of the hosts only.
        alone = len(hosts) - 1 if group.all_pairs else 1
        for pair in pairs:
            path = min(network.link_q16.get(pair, ONE), self._lossy_q16(pair, lane))
            share = min(share, path * alone)
        gpu = self._job.machine.gpu
        for rank in group.ranks if gpu else ():
            assert gpu is not None
            pcie = gpu.pcie_bytes_per_s * self._job.gpus.pcie_q16.get(rank, ONE)
            share = min(share, pcie // lane)
        if network.transport == "roce":
            share = share * network.pause_storm_q16 >> 16
        return max(min(share, ONE), 1)

    def _lossy_q16(self, pair: tuple[int, int], lane: int) -> int:
        """Share of a lane that a path carries which loses packets."""
        ppm = self._network.loss_ppm.get(pair, 0)
        if not ppm:
            return ONE
        rtt_ns = 2 * (self._job.machine.nic_latency_ns + self._network.latency_ns.get(pair, 0))
        if self._nccl is None or self._network.transport == "socket":
            rate = tcp_bytes_per_s(rtt_ns + HOST_RTT_NS, ppm)
            count = CONNECTIONS if self._nccl else 1
            return min(count * rate * ONE // lane, ONE)
        packets = max(lane * rtt_ns // (PACKET_BYTES * 10**9), 1)
        return ONE * 10**6 // (10**6 + ppm * packets)


def tcp_bytes_per_s(rtt_ns: int, loss_ppm: int) -> int:
    """Return what one TCP connection carries at a round-trip time and share of lost packets.

    >>> tcp_bytes_per_s(1_000_000, 10_000) // 1000  # 1448 bytes/ms * sqrt(1.5 / 0.01)
    17734
    """
    root_q16 = isqrt((1_500_000 << 32) // loss_ppm)
    return SEGMENT_BYTES * 10**9 // rtt_ns * root_q16 >> 16


def _pairs(hosts: Sequence[int], all_pairs: bool) -> list[tuple[int, int]]:
    """Return the pairs of hosts between which a group sends, the lower one first."""
    if all_pairs or len(hosts) < 3:
        return list(combinations(hosts, 2))
    ring = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
    return [(min(pair), max(pair)) for pair in ring]
