"""What checkpoints write, and when."""

from __future__ import annotations

import numpy as np

from injectors.sim.noise import Ints
from injectors.sim.pauses import saves
from injectors.sim.run import Run


def saved_steps(run: Run) -> list[int]:
    """Return the steps at whose end a checkpoint is saved."""
    return [step for step in range(run.job.steps) if saves(run.job, step)]


def written_bytes(run: Run, times_ns: Ints) -> Ints:
    """Return the bytes of checkpoints that ranks have written by some times, (ranks, samples).

    Writing begins once the copy is on the host, and goes on at its pace.
    """
    saved, found = run.job.checkpoint, np.zeros(times_ns.shape, np.int64)
    ranks = np.arange(len(times_ns)) if saved.ranks is None else np.array(saved.ranks, np.int64)
    begins = run.pauses.get("pause/checkpoint", run.marks["end"])
    for step in saved_steps(run):
        since_us = np.maximum(times_ns[ranks] - begins[step, ranks][:, None], 0) // 1000
        moved = since_us * (saved.bytes_per_s // 1000) // 1000
        found[ranks] += np.minimum(moved, saved.bytes)
    return found
