"""Counters of loader workers at given times, from the batches that they fetched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.batches import Batches
from injectors.sim.tables.sampling import reader


@dataclass(frozen=True)
class WorkerCounters:
    """Counters since the start, (ranks * workers, samples), the workers of a rank together."""

    cpu_ns: Ints
    delay_ns: Ints
    read_ns: Ints
    read_bytes: Ints
    batches: Ints


def worker_counters(run: Run, done: Batches, times_ns: Ints) -> WorkerCounters:
    """Read the workers' counters at `times_ns`, (ranks, samples)."""
    workers = run.job.loader.workers
    start, ready = (_by_worker(values, workers) for values in (done.start_ns, done.ready_ns))
    parts = np.stack([start, ready], axis=1).reshape(2 * len(start), -1)
    parts = np.maximum.accumulate(parts, axis=0)
    at = reader(parts, np.repeat(times_ns, workers, axis=0))

    def counter(values: Ints) -> Ints:
        own = _by_worker(values, workers, fill=0)
        return at.read(np.stack([0 * own, own], axis=1).reshape(parts.shape))

    return WorkerCounters(
        cpu_ns=counter(done.cpu_ns),
        delay_ns=counter(done.delay_ns),
        read_ns=counter(done.read_ns),
        read_bytes=counter(done.read_bytes),
        batches=counter(np.ones_like(done.cpu_ns)),
    )


def _by_worker(values: Ints, workers: int, fill: int | None = None) -> Ints:
    """Deal batches (batches, ranks) out to workers: (rounds, ranks * workers).

    The last round is filled up with `fill`, or with each rank's last value.
    """
    count, ranks = values.shape
    missing = -count % workers
    last = values[-1:] if fill is None else np.full((1, ranks), fill, np.int64)
    whole = np.concatenate([values, np.repeat(last, missing, axis=0)])
    return whole.reshape(-1, workers, ranks).transpose(0, 2, 1).reshape(-1, ranks * workers)
