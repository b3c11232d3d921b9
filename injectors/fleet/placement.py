"""Placing jobs on machines: each gets free GPUs for as long as it asked."""

from __future__ import annotations

import numpy as np

from injectors.fleet.fleet import Fleet
from injectors.sim import noise
from injectors.sim.noise import Ints, Keys


def place(
    fleet: Fleet, keys: Keys, asked_ns: Ints, hold_ns: Ints, ranks: Ints
) -> tuple[Ints, Ints]:
    """Return the first GPU and the start of each job; r ranks get r GPUs of a machine in a row.

    Jobs are placed in the order in which they come, each at a place drawn by its key among those
    that are free; where none is, it waits for the one that is free soonest.

    Args:
        fleet: The machines.
        keys: Each job's key.
        asked_ns: When each job comes, ascending.
        hold_ns: How long each job may hold its GPUs.
        ranks: Ranks of each job, a divisor of the GPUs of a machine.
    """
    busy_until = np.zeros(len(fleet.gpu_machine), dtype=np.int64)
    drawn = noise.below(noise.extend(keys, "place"), 2**32)
    first, start = np.empty_like(asked_ns), asked_ns.copy()
    for job, (asked, hold, size) in enumerate(zip(asked_ns, hold_ns, ranks, strict=True)):
        blocks = busy_until.reshape(-1, size).max(axis=1)
        free = np.flatnonzero(blocks <= asked)
        chosen = free[drawn[job] * len(free) >> 32] if len(free) else int(blocks.argmin())
        first[job], start[job] = chosen * size, max(asked, blocks[chosen])
        busy_until[first[job] : first[job] + size] = start[job] + hold
    return first, start
