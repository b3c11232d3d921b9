"""Placing jobs on machines: each gets free GPUs for as long as it asked."""

from __future__ import annotations

import numpy as np

from injectors.fleet.fleet import Fleet
from injectors.sim import noise
from injectors.sim.noise import Ints, Keys


def place(fleet: Fleet, keys: Keys, start_ns: Ints, hold_ns: Ints, ranks: Ints) -> Ints:
    """Return the first GPU of each job; a job of r ranks has r GPUs of one machine in a row.

    Jobs are placed in order of start, each at a place drawn by its key among those that are free;
    where none is, at the one that is free soonest.

    Args:
        fleet: The machines.
        keys: Each job's key.
        start_ns: Starts, ascending.
        hold_ns: How long each job may hold its GPUs.
        ranks: Ranks of each job, a divisor of the GPUs of a machine.
    """
    busy_until = np.zeros(len(fleet.gpu_machine), dtype=np.int64)
    drawn = noise.below(noise.extend(keys, "place"), 2**32)
    first = np.empty(len(keys), dtype=np.int64)
    for job, (start, hold, size) in enumerate(zip(start_ns, hold_ns, ranks, strict=True)):
        blocks = busy_until.reshape(-1, size).max(axis=1)
        free = np.flatnonzero(blocks <= start)
        chosen = free[drawn[job] * len(free) >> 32] if len(free) else int(blocks.argmin())
        first[job] = chosen * size
        busy_until[first[job] : first[job] + size] = start + hold
    return first
