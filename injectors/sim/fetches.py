"""How long loader workers need for each batch: reading it, then decoding it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.program import Ints

READ_TAIL_Q16 = 7864  # of the read time, 12 %: requests that take long
DECODE_SIGMA_Q16 = 2621  # 4 %: samples differ


@dataclass(frozen=True)
class Fetches:
    """A step's batches; arrays (batches, ranks) of int64.

    Attributes:
        worker: Number of the worker that fetches each (0 where the rank itself does).
        read_ns: Time of reading.
        cpu_ns: CPU time of decoding; `decode_ns` is how long that takes.
    """

    worker: Ints
    read_ns: Ints
    cpu_ns: Ints
    decode_ns: Ints

    @property
    def total_ns(self) -> Ints:
        """What the worker needs for each batch."""
        return self.read_ns + self.decode_ns


class Fetching:
    """Draws the fetches of every step; they don't depend on how the job fares.

    Args:
        job: Whose loader.
        batches: Of a step.
        cpu_q16: (ranks,), CPU time of workers over nominal, see injectors.sim.cpu_time.
    """

    def __init__(self, job: Job, batches: int, cpu_q16: Ints) -> None:
        self._job, self._batches, self._cpu_q16 = job, batches, cpu_q16
        self._ranks = np.arange(job.places.ranks)
        given = job.loader.rank_q16
        self._nothing = Fetches(*(np.zeros((0, len(self._ranks)), np.int64) for _ in range(4)))
        self._rank_q16 = np.array([given.get(r, ONE) for r in self._ranks.tolist()], np.int64)

    def of(self, step: int) -> Fetches:
        """Return a step's fetches."""
        if not self._batches:
            return self._nothing
        loader = self._job.loader
        number = step * self._batches + np.arange(self._batches, dtype=np.int64)[:, None]
        worker = number % max(loader.workers, 1)
        slower = self._slower_q16(step, worker)
        of = noise.keys(self._job.seed, "fetch", number, self._ranks)
        reading = noise.exponential_q16(of, READ_TAIL_Q16) + ONE - READ_TAIL_Q16
        decoding = noise.factor_q16(noise.extend(of, "decode"), DECODE_SIGMA_Q16)
        read_ns = (read_time_ns(self._job) * reading >> 16) * slower >> 16
        cpu_ns = ((loader.decode_ns * decoding >> 16) * slower >> 16) * self._cpu_q16 >> 16
        return Fetches(
            np.broadcast_to(worker, read_ns.shape),
            read_ns,
            cpu_ns,
            cpu_ns * crowd_q16(self._job) >> 16,
        )

    def _slower_q16(self, step: int, worker: Ints) -> Ints:
        """Factor of ranks, of workers, and of the rank whose turn it is to be late."""
        loader = self._job.loader
        found = np.broadcast_to(self._rank_q16, (self._batches, len(self._ranks))).copy()
        for (rank, number), factor in loader.worker_q16.items():
            own = found[:, rank]
            found[:, rank] = np.where(worker[:, 0] == number, own * factor >> 16, own)
        if loader.straggler_q16 != ONE:
            turn = step // max(loader.straggler_every, 1)
            late = straggler(self._job, turn)
            found[:, late] = found[:, late] * loader.straggler_q16 >> 16
        return found


def straggler(job: Job, turn: int) -> int:
    """Return the rank that is late in a turn; no rank is so twice in a row."""
    ranks = job.places.ranks
    if ranks < 2:
        return 0
    first = noise.key(job.seed, "straggler") % ranks
    steps = sum(1 + noise.key(job.seed, "straggler", i) % (ranks - 1) for i in range(1, turn + 1))
    return (first + steps) % ranks


def read_time_ns(job: Job) -> int:
    """Return what reading a batch takes: latency of the requests, and the bytes.

    The workers of a host share what its storage gives; a worker alone gets what it can.
    """
    loader, places = job.loader, job.places
    workers = max(loader.workers, 1) * min(places.per_host, places.ranks)
    rate = max(min(loader.storage_bytes_per_s, job.machine.storage_bytes_per_s // workers), 1)
    moved = loader.read_bytes * loader.extra_reads_q16 >> 16
    requests = loader.requests * loader.extra_reads_q16 >> 16
    return requests * loader.request_ns + moved * 10**9 // rate


def crowd_q16(job: Job) -> int:
    """Return how much longer decoding takes since a rank's workers share too few cores."""
    loader = job.loader
    return max(ONE, loader.workers * ONE // max(loader.worker_cores, 1))
