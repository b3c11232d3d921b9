"""What loader workers did for every batch of a run, from the same draws as the engine was given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.cpu_time import CpuTime
from injectors.sim.job import ONE
from injectors.sim.noise import Ints
from injectors.sim.run import Run

SIZE_SIGMA_Q16 = 1311  # 2 %: samples differ in size
UNPACK_NS = 120_000  # between having a batch and going on


@dataclass(frozen=True)
class Batches:
    """All batches in order of delivery, (batches, ranks) of int64.

    Attributes:
        worker: Number of the worker.
        start_ns, ready_ns: When it began and was done, in simulated time.
        asked_ns: When the rank asked for it.
        read_ns: Time of reading.
        cpu_ns, delay_ns: CPU time, and time runnable without a core.
        read_bytes: Bytes read.
    """

    worker: Ints
    start_ns: Ints
    ready_ns: Ints
    asked_ns: Ints
    read_ns: Ints
    cpu_ns: Ints
    delay_ns: Ints
    read_bytes: Ints


def batches(run: Run, cpu: CpuTime) -> Batches:
    """Return what was done for each batch."""
    found = run.fetches
    decode_ns = np.concatenate([one.decode_ns for one in found])
    lost_q16 = (cpu.crowd_q16 * (ONE + cpu.foreign_q16) >> 16) * (ONE + cpu.throttled_q16) >> 16
    cpu_ns = np.concatenate([one.cpu_ns for one in found]) * ONE // lost_q16
    ranks = decode_ns.shape[1]
    loader, numbers = run.job.loader, np.arange(len(decode_ns))[:, None]
    of = noise.keys(run.job.seed, "batch size", numbers, np.arange(ranks))
    size = loader.read_bytes * loader.extra_reads_q16 >> 16
    taken, waited = run.taken.reshape(-1, ranks), np.maximum(run.waited, 0).reshape(-1, ranks)
    return Batches(
        worker=np.concatenate([one.worker for one in found]),
        start_ns=run.fetch_start.reshape(-1, ranks),
        ready_ns=run.ready.reshape(-1, ranks),
        asked_ns=taken - waited - UNPACK_NS,
        read_ns=np.concatenate([one.read_ns for one in found]),
        cpu_ns=cpu_ns,
        delay_ns=np.maximum(decode_ns - cpu_ns, 0),
        read_bytes=noise.scale_q16(size, noise.factor_q16(of, SIZE_SIGMA_Q16)),
    )


def queue_depth(run: Run, done: Batches) -> Ints:
    """Return how many batches stood ready when the rank asked for each, (batches, ranks).

    Batches after the last one are made ready as the loader goes on making them.
    """
    workers, ahead = run.job.loader.workers, run.job.loader.workers * run.job.loader.prefetch
    ready = _further(run, done, workers, ahead)
    depth = np.zeros(done.ready_ns.shape, np.int64)
    for later in range(ahead):
        depth += ready[later : later + len(depth)] <= done.asked_ns
    return depth


def _further(run: Run, done: Batches, workers: int, ahead: int) -> Ints:
    """Return when batches are ready, with `ahead` more than were taken."""
    count, ranks = done.ready_ns.shape
    ready = np.concatenate([done.ready_ns, np.zeros((ahead, ranks), np.int64)])
    taken = run.taken.reshape(-1, ranks)
    usual = done.ready_ns - done.start_ns
    for number in range(count, count + ahead):
        before = ready[number - workers] if number >= workers else 0
        room = taken[number - ahead] if number >= ahead else 0
        ready[number] = np.maximum(before, room) + usual[number % count]
    return ready
