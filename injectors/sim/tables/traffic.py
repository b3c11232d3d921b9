"""How many bytes a job's communication takes over which way, rank by rank.

A ring crosses from host to host once for each of its channels, and each rank's interface carries
one of as many channels as the host has ranks; what stays within a host takes NVLink, or PCIe where
that is missing. An all-to-all sends to each peer by the way that leads there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints
from injectors.sim.program import Kind, Op, Program
from injectors.sim.run import Run
from injectors.sim.tables.interfaces import places_of

# NCCL's names of operations, as traces have them -> the flight recorder's.
OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "all_to_allv": "all_to_all",
    "all_to_all": "all_to_all",
    "alltoall_base": "all_to_all",
}
COMMUNICATION = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
# Uneven exchanges, by two parts of their paths -> the row of work that the sender's bytes follow:
# what experts and tables give back.
UNEVEN = {
    ("/forward/", "/combine/tokens"): "experts",
    ("/backward/", "/dispatch/tokens"): "experts",
    ("/forward/", "/sums/swap"): "rows",
}


@dataclass(frozen=True)
class Way:
    """What a rank sends within its host and beyond it, Q16 of its payload, (ranks,) each."""

    within_q16: Ints
    beyond_q16: Ints

    @property
    def crosses(self) -> bool:
        """Whether anything leaves a host."""
        return bool(self.beyond_q16.any())


@dataclass(frozen=True)
class Traffic:
    """Bytes a step, each (steps, ranks): sent and received over the interface, and within hosts.

    Attributes:
        ways: Of each communication op, by its path.
        nic_tx, nic_rx: To and from other hosts.
        local_tx, local_rx: To and from ranks of the same host.
    """

    ways: dict[str, Way]
    nic_tx: Ints
    nic_rx: Ints
    local_tx: Ints
    local_rx: Ints


def operation(op: Op) -> str:
    """Return the flight recorder's name of what a communication op does, "" for other ops."""
    name = op.label.collective.op if op.label.collective else ""
    return OPERATIONS.get(name, name)


def payload(run: Run, op: Op) -> Ints:
    """Return the bytes that each rank puts in, (steps, ranks).

    A label names the whole tensor; of an all-gather each rank has its part of it.
    """
    words = op.label.collective
    assert words is not None
    own = words.bytes // words.world if operation(op) == "all_gather" else words.bytes
    row = next((UNEVEN[parts] for parts in UNEVEN if all(part in op.path for part in parts)), "")
    if not row:
        return np.full((len(run.conditions), run.program.ranks), own)
    return own * work_q16(run, row) >> 16


def work_q16(run: Run, kind: str) -> Ints:
    """Return the row of work of a kind, (steps, ranks); what no row scales is even."""
    kinds = work_kinds(run.program)
    number = kinds.index(kind) if kind in kinds else 0
    return np.stack([found.work_q16[number] for found in run.conditions])


def work_kinds(program: Program) -> list[str]:
    """Return the kind of each row of work: the last part of its name."""
    return [name.rpartition(".")[2] for name in program.work_rows]


def traffic(run: Run) -> Traffic:
    """Add up what all communication of each step sends where."""
    shape = run.step_ns.shape
    sent, received = (np.zeros((2, *shape), np.int64) for _ in range(2))
    found = ways(run.program, run.job)
    for op in run.program.ops:
        if op.path not in found:
            continue
        shares = np.stack([found[op.path].within_q16, found[op.path].beyond_q16])[:, None]
        moved = payload(run, op) * (run.collectives[op.path].host >= 0) * shares >> 16
        if op.kind != Kind.RECV:
            sent += moved
        if op.kind != Kind.SEND:
            received += moved
    return Traffic(found, sent[1], received[1], sent[0], received[0])


def ways(program: Program, job: Job) -> dict[str, Way]:
    """Return the ways of all communication ops by their paths."""
    hosts = places_of(job)
    known: dict[tuple[object, ...], Way] = {}
    found = {}
    for op in program.ops:
        if op.kind not in COMMUNICATION or op.label.collective is None:
            continue
        alike = (op.kind, op.groups, operation(op), op.ranks, op.peers)
        if alike not in known:
            known[alike] = _way(program, op, hosts)
        found[op.path] = known[alike]
    return found


def _way(program: Program, op: Op, hosts: Ints) -> Way:
    within, beyond = (np.zeros(program.ranks, np.int64) for _ in range(2))
    if op.kind != Kind.COLLECTIVE:
        ranks = np.arange(program.ranks) if op.ranks is None else np.array(op.ranks)
        here = hosts[ranks] == hosts[np.array(op.peers)]
        within[ranks], beyond[ranks] = ONE * here, ONE * ~here
        return Way(within, beyond)
    for group in program.groups[op.groups]:
        own = hosts[group]
        count = np.bincount(own)
        shares = [
            _shares(operation(op), len(group), local, int(np.count_nonzero(count)))
            for local in count.tolist()
        ]
        within[group], beyond[group] = np.array(shares, np.int64)[own].T
    return Way(within, beyond)


def _shares(what: str, ranks: int, local: int, hosts: int) -> tuple[int, int]:
    """Parts of a payload that one member of a group sends within its host and beyond it."""
    if not local:
        return 0, 0
    if what == "all_to_all":
        return ONE * (local - 1) // ranks, ONE * (ranks - local) // ranks
    rounds = {"all_reduce": 2 * (ranks - 1), "all_gather": (ranks - 1) * ranks}
    whole = ONE * rounds.get(what, ranks - 1) // ranks
    if hosts == 1:
        return whole, 0
    return whole * (local - 1) // local, whole // local
