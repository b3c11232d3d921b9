"""Op programs as arrays, which both backends of the engine read.

Rank sets, groups and peers lie in flat arrays; ops that share one share its place there. The
members of a collective stand group after group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from injectors.sim.back_pressure import LaunchNumbers
from injectors.sim.noise import text_hash
from injectors.sim.program import STREAMS, Ints, Kind, Op, Program, Stream, contiguous

COMMUNICATION = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
LAUNCHED = (Kind.KERNEL, *COMMUNICATION)
FLAT = ("members", "bounds", "peers", "earlier")  # columns of `OpArrays` that are not by op


class OpArrays(NamedTuple):
    """Ops as columns, int64 of (ops,) where nothing else is said; fields as those of `Op`.

    Attributes:
        first, width: The op's ranks are `members[first : first + width]`.
        members: Ranks of every rank set, one after the other.
        group_first, group_count: `bounds[group_first : group_first + group_count + 1]` are where
            the groups of a collective begin and end within its members.
        peer_first: Where the partners of a SEND or RECV begin in `peers`, in members' order.
        pair: Number of a RECV's SEND.
        beside_ns: Nominal time of the kernels that the COMPUTE stream is given after a collective
            and before anything waits for it.
        earlier_first, earlier_each: `earlier[earlier_first + earlier_each * m]` says for member m
            what a launch must wait for, see `LaunchNumbers`.
    """

    kind: Ints
    thread: Ints
    stream: Ints
    other: Ints
    host_ns: Ints
    launch_ns: Ints
    fixed_ns: Ints
    compute_ns: Ints
    memory_ns: Ints
    noise: Ints
    work: Ints
    transfer: Ints
    pause: Ints
    batch: Ints
    first: Ints
    width: Ints
    members: Ints
    group_first: Ints
    group_count: Ints
    bounds: Ints
    peer_first: Ints
    peers: Ints
    pair: Ints
    beside_ns: Ints
    earlier_first: Ints
    earlier_each: Ints
    earlier: Ints


@dataclass(frozen=True)
class Compiled:
    """A program ready for the engine.

    Attributes:
        ranks, batches: As of the program.
        arrays: The ops.
        entity: (ops,), hash of each op's path, its bits as int64.
        members: Of each op, its ranks (a slice where they are evenly spaced).
        launches: What back-pressure needs.
    """

    ranks: int
    batches: int
    arrays: OpArrays
    entity: Ints
    members: tuple[slice | Ints, ...]
    launches: LaunchNumbers


class _Flat:
    """Sequences of whole numbers laid out one after the other, equal ones once."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, ...], int] = {}
        self._parts: list[tuple[int, ...]] = []
        self._size = 0

    def place(self, values: Sequence[int]) -> int:
        known = tuple(values)
        if known not in self._first:
            self._first[known] = self._size
            self._parts.append(known)
            self._size += len(known)
        return self._first[known]

    @property
    def array(self) -> Ints:
        return np.array([value for part in self._parts for value in part], np.int64)


def compile_program(program: Program, queue_depth: int) -> Compiled:
    """Lay out a program; raises ValueError where it cannot be interpreted as written."""
    ops = program.ops
    sets = _RankSets(program)
    members, bounds, peers = _Flat(), _Flat(), _Flat()
    ranks_of = [sets.members(op) for op in ops]
    first = [members.place(ranks) for ranks in ranks_of]
    bounds_of = [sets.bounds(op) for op in ops]
    launches = LaunchNumbers(program.ranks, queue_depth)
    as_arrays = {id(ranks): np.array(ranks, np.int64) for ranks in ranks_of}
    earlier = launches.number(
        [
            (int(op.stream) if op.kind in LAUNCHED and op.launch_ns else None, as_arrays[id(ranks)])
            for op, ranks in zip(ops, ranks_of, strict=True)
        ]
    )
    fields = ("kind", "thread", "stream", "other", "host_ns", "launch_ns", "fixed_ns", "compute_ns")
    more = ("memory_ns", "noise", "work", "transfer", "pause", "batch")
    arrays = OpArrays(
        **{name: np.array([getattr(op, name) for op in ops], np.int64) for name in fields + more},
        first=np.array(first, np.int64),
        width=np.array([len(ranks) for ranks in ranks_of], np.int64),
        group_first=np.array([bounds.place(found) for found in bounds_of], np.int64),
        group_count=np.array([max(len(found) - 1, 0) for found in bounds_of], np.int64),
        peer_first=np.array([peers.place(op.peers) for op in ops], np.int64),
        pair=np.array(_pairs(ops), np.int64),
        beside_ns=np.array(beside(ops, ranks_of), np.int64),
        members=members.array,
        bounds=bounds.array,
        peers=peers.array,
        earlier_first=earlier.first,
        earlier_each=earlier.each,
        earlier=earlier.flat,
    )
    selected = {key: contiguous(list(found)) for key, found in as_arrays.items() if len(found)}
    return Compiled(
        ranks=program.ranks,
        batches=program.batches,
        arrays=arrays,
        entity=np.array([text_hash(op.path) for op in ops], np.uint64).view(np.int64),
        members=tuple(selected.get(id(ranks)) or as_arrays[id(ranks)] for ranks in ranks_of),
        launches=launches,
    )


class _RankSets:
    """Who does an op: its own ranks, or those of them that are in a group of its partition."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._all = tuple(range(program.ranks))
        self._groups: dict[tuple[str, tuple[int, ...] | None], list[list[int]]] = {}
        self._members: dict[tuple[str, tuple[int, ...] | None], tuple[int, ...]] = {}

    def members(self, op: Op) -> tuple[int, ...]:
        if op.kind != Kind.COLLECTIVE:
            return self._all if op.ranks is None else op.ranks
        key = (op.groups, op.ranks)
        if key not in self._members:
            self._members[key] = tuple(rank for group in self.groups(op) for rank in group)
        return self._members[key]

    def bounds(self, op: Op) -> list[int]:
        if op.kind != Kind.COLLECTIVE:
            return []
        return [0, *np.cumsum([len(group) for group in self.groups(op)]).tolist()]

    def groups(self, op: Op) -> list[list[int]]:
        """Groups of a collective that its ranks form; each is in or out as a whole."""
        key = (op.groups, op.ranks)
        if key not in self._groups:
            self._groups[key] = self._find(op)
        return self._groups[key]

    def _find(self, op: Op) -> list[list[int]]:
        asked = set(self._all if op.ranks is None else op.ranks)
        found = []
        for group in self._program.groups[op.groups]:
            there = asked.intersection(group)
            if there and len(there) != len(group):
                missing = sorted(set(group) - there)
                raise ValueError(f"{op.path}: ranks {missing} of the group {group} must join too")
            if there:
                found.append(group)
        return found


def _pairs(ops: Sequence[Op]) -> list[int]:
    """Number of each RECV's SEND, -1 for other ops."""
    sends = {op.path: index for index, op in enumerate(ops) if op.kind == Kind.SEND}
    return [sends[op.pair] if op.kind == Kind.RECV else -1 for op in ops]


def beside(ops: Sequence[Op], ranks_of: Sequence[tuple[int, ...]]) -> list[int]:
    """Nominal ns of COMPUTE kernels that may run beside each communication op.

    The engine goes through ops in program order, so it does not yet know of kernels that are
    launched later and run while a collective does. They are those up to the point where the
    COMPUTE stream or the host waits for the collective's stream; if nothing does, there are none.
    """
    found = [0] * len(ops)
    asked = {ranks[0] for op, ranks in zip(ops, ranks_of, strict=True) if _joins(op) and ranks}
    sets = {id(ranks): frozenset(ranks) for ranks in ranks_of}
    for rank in sorted(asked):
        following: list[int | None] = [None] * STREAMS
        for index in range(len(ops) - 1, -1, -1):
            op, ranks = ops[index], ranks_of[index]
            if rank not in sets[id(ranks)]:
                continue
            if _joins(op) and ranks[0] == rank:
                found[index] = following[op.stream] or 0
            _look_back(op, following)
    return found


def _joins(op: Op) -> bool:
    return op.kind in COMMUNICATION and op.stream != Stream.COMPUTE


def _look_back(op: Op, following: list[int | None]) -> None:
    """Account for an op that comes before those already seen."""
    if op.kind == Kind.SYNC:
        following[op.stream] = 0
    elif op.kind == Kind.WAIT_STREAM and op.stream == Stream.COMPUTE:
        following[op.other] = 0
    elif op.kind == Kind.KERNEL and op.stream == Stream.COMPUTE:
        nominal = op.fixed_ns + max(op.compute_ns, op.memory_ns)
        for stream, known in enumerate(following):
            if known is not None:
                following[stream] = known + nominal
