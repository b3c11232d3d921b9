"""Who is sending to another host at a moment, and how full that makes a queue."""

from __future__ import annotations

import numpy as np

from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints
from injectors.sim.program import Kind, Op
from injectors.sim.run import Run
from injectors.sim.tables.interfaces import path_q16, places_of
from injectors.sim.tables.sampling import place
from injectors.sim.tables.traffic import Traffic

EVEN_Q16 = ONE // 2  # a queue where all paths of a ring are alike


def sending_share_q16(run: Run, moved: Traffic, times_ns: Ints) -> Ints:
    """Return how full each rank's queue is at some times, (ranks, samples), 0 for empty."""
    step = place(run.marks["end"], times_ns)[0]
    rank = np.arange(len(times_ns))[:, None]
    found = np.zeros(times_ns.shape, np.int64)
    for op in run.program.ops:
        if op.kind == Kind.RECV or op.path not in moved.ways or not moved.ways[op.path].crosses:
            continue
        own = run.collectives[op.path]
        joined = np.where(own.joined < 0, own.start, own.joined)
        begin, end = joined[step, rank], own.end[step, rank]
        under_way = (begin >= 0) & (begin <= times_ns) & (times_ns < end)
        np.maximum(found, under_way * _fullness_q16(run, op)[:, None], out=found)
    return found


def _fullness_q16(run: Run, op: Op) -> Ints:
    """Return how full a queue the op makes at each rank, (ranks,): full before a slow path."""
    host_of, found = places_of(run.job), np.zeros(run.program.ranks, np.int64)
    if op.kind == Kind.SEND:
        ranks = np.arange(run.program.ranks) if op.ranks is None else np.array(op.ranks)
        for rank, here, there in zip(ranks, host_of[ranks], host_of[list(op.peers)], strict=True):
            slow = path_q16(run.job, int(here), int(there)) < ONE
            found[rank] = (ONE if slow else EVEN_Q16) * (here != there)
        return found
    for group in run.program.groups[op.groups]:
        own = host_of[group]
        found[group] = _ring(run.job, np.unique(own))[np.searchsorted(np.unique(own), own)]
    return found


def _ring(job: Job, hosts: Ints) -> Ints:
    """Return how full queues of hosts are, each of which sends to the next one, (hosts,)."""
    if len(hosts) < 2:
        return np.zeros(1, np.int64)
    ends = zip(hosts.tolist(), np.roll(hosts, -1).tolist(), strict=True)
    left = np.array([path_q16(job, here, there) for here, there in ends], np.int64)
    worst = int(left.min())
    return np.full(len(left), EVEN_Q16) if worst == ONE else ONE * worst // left
