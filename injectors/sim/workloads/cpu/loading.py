"""The loader of the real image classifier, as the numbers of a simulated one."""

from __future__ import annotations

from dataclasses import replace

from injectors.sim.job import ONE, Job
from injectors.sim.twin import Twin
from injectors.sim.workloads.cpu.operators import twin_of
from injectors.workloads.image_classifier import ImageClassifier

PASS_PS_A_VALUE = 5_500  # of one augmentation pass, from healthy jobs with few and many
CHUNK_PS_A_VALUE = 4_300  # decompressing an image that lies in a chunk
COMPRESSED_Q16 = ONE * 95 // 100  # bytes stored over values of an image of 8 bits
RESPAWN_NS = 55_000_000  # ending the workers of a loader and starting as many again
UNLIMITED = 10**12


def set_loader(job: Job) -> None:
    """Set the job's loader by its workload, the knobs and the machine's speeds."""
    model = job.workload
    if not isinstance(model, ImageClassifier):
        return
    twin, loader = twin_of(job), job.loader
    loader.workers, loader.prefetch = model.workers, model.prefetch
    loader.worker_cores = _worker_cores(job, twin)
    values = 3 * model.pixels**2 * model.batch_size
    speeds = twin.speeds
    again = max(0, model.augment_passes * twin.number("decode_passes") - 1)
    loader.decode_ns = speeds.decode_ns + again * values * PASS_PS_A_VALUE // 1000
    loader.read_bytes = values * COMPRESSED_Q16 >> 16
    loader.requests, loader.request_ns = model.batch_size, speeds.read_ns // model.batch_size
    loader.epoch_steps = model.epoch_batches * twin.number("worker_life_epochs")
    loader.respawn_ns = RESPAWN_NS if loader.epoch_steps else 0
    if model.layout == "packed":
        _unpack_chunks(job, model, twin)
    _store(job, twin)
    _delay(job, model, twin)


def _worker_cores(job: Job, twin: Twin) -> int:
    """Cores that the workers of a rank share; unpinned ones have all, but for what a rank takes."""
    if twin.number("worker_core") >= 0:
        return 1
    free = twin.cores - job.places.ranks
    return max(1, free) if twin.pinned else twin.cores


def _unpack_chunks(job: Job, model: ImageClassifier, twin: Twin) -> None:
    """Chunks are decompressed to read an image of them, unless it is the one read last."""
    shuffled_q16, loader = round(twin.knobs["remapped_share"] * ONE), job.loader
    in_order_q16 = (ONE - shuffled_q16) ** 2 >> 16  # of two images in a row that neither moved
    scanned_q16 = ONE * model.batch_size // model.chunk_images * max(1, min(model.workers, 2))
    chunks_q16 = model.batch_size * (ONE - in_order_q16) + (scanned_q16 * in_order_q16 >> 16)
    values = 3 * model.pixels**2 * model.chunk_images
    loader.decode_ns += (chunks_q16 * (values * CHUNK_PS_A_VALUE // 1000)) >> 16
    loader.read_bytes = (chunks_q16 * (values * COMPRESSED_Q16 >> 16)) >> 16


def _store(job: Job, twin: Twin) -> None:
    """All workers of the job share one storage."""
    rate = twin.knobs["storage_bytes_per_s"]
    shared = UNLIMITED if rate == float("inf") else round(rate)
    job.machine = replace(job.machine, storage_bytes_per_s=shared)
    job.loader.storage_bytes_per_s = shared


def _delay(job: Job, model: ImageClassifier, twin: Twin) -> None:
    """Reads that wait: of one rank after the other, or of a rank's worker."""
    loader = job.loader
    wait_ns = round(twin.knobs["read_latency_s"] * 10**9) * model.batch_size
    if not wait_ns:
        return
    usual_ns = loader.decode_ns + loader.requests * loader.request_ns
    slower_q16 = ONE + wait_ns * ONE // usual_ns
    turn = twin.number("latency_turn_batches")
    worker, rank = twin.number("latency_worker"), twin.number("latency_rank")
    if turn:
        loader.straggler_q16, loader.straggler_every = slower_q16, turn
    elif worker >= 0:
        loader.worker_q16[worker] = slower_q16
    else:
        loader.rank_q16[max(rank, 0)] = slower_q16
