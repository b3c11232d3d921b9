"""What a twin's loader workers need for each batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from injectors.sim.expected import Expected
from injectors.sim.fetches import Fetches, Fetching
from injectors.sim.job import ONE, Job
from injectors.sim.program import Ints
from injectors.sim.workloads.cpu.operators import twin_of
from injectors.workloads.image_classifier import ImageClassifier


class TwinFetching(Fetching):
    """Draws the fetches of every step.

    Workers share cores among each other, with competitors and, where none is free, with the
    ranks. A worker that shares a core with its rank gets what the rank leaves, so that a batch
    takes the time of both, save while it waits for storage.
    """

    def __init__(self, job: Job, batches: int, expected: Expected) -> None:
        twin, ranks = twin_of(job), job.places.ranks
        cores = twin.worker_cores(ranks)
        crowd_q16 = sum(twin.crowd_q16.get(core, 0) for core in cores) // len(cores)
        super().__init__(job, batches, np.full(ranks, ONE + crowd_q16, np.int64))
        self._twin = twin
        self._beside_ns = expected.host_ns if twin.shared(ranks) else 0 * expected.host_ns

    def of(self, step: int) -> Fetches:
        """Return a step's fetches."""
        found = super().of(step)
        read_ns = found.read_ns + self._wait_ns(step, found.worker)
        beside = np.maximum(self._beside_ns - read_ns, 0)
        return replace(found, read_ns=read_ns, decode_ns=found.decode_ns + beside)

    def _wait_ns(self, step: int, worker: Ints) -> Ints:
        """Latency of all reads of a batch: of one rank after the other, or of one worker."""
        twin, model = self._twin, self._job.workload
        reads = model.batch_size if isinstance(model, ImageClassifier) else 0
        wait_ns = round(twin.knobs["read_latency_s"] * 10**9) * reads
        turn, own = twin.number("latency_turn_batches"), twin.number("latency_rank")
        if turn:
            meant = self._ranks == step // turn % len(self._ranks)
        else:
            named = twin.number("latency_worker")
            meant = ((own < 0) | (self._ranks == own)) & ((named < 0) | (worker == named))
        return np.asarray(wait_ns * np.broadcast_to(meant, worker.shape))
