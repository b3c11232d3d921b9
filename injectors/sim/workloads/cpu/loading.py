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
RESPAWN_NS = 70_000_000  # ending the workers of a loader and starting as many again
UNLIMITED = 10**12


def set_loader(job: Job) -> None:
    """Set the job's loader by its workload, the knobs and the machine's speeds."""
    model = job.workload
    if not isinstance(model, ImageClassifier):
        return
    twin, loader = twin_of(job), job.loader
    loader.workers, loader.prefetch = model.workers, model.prefetch
    loader.worker_cores = len(twin.worker_cores(job.places.ranks))
    values = 3 * model.pixels**2 * model.batch_size
    speeds = twin.speeds
    loader.decode_ns = speeds.decode_ns
    loader.decode_ns += repeated_decode_ns(model, twin.number("decode_passes"))
    loader.read_bytes = values * COMPRESSED_Q16 >> 16
    loader.requests, loader.request_ns = model.batch_size, speeds.read_ns // model.batch_size
    loader.epoch_steps = model.epoch_batches * twin.number("worker_life_epochs")
    loader.respawn_ns = RESPAWN_NS if loader.epoch_steps else 0
    if model.layout == "packed":
        _unpack_chunks(job, model, twin)
    _store(job, twin)


def repeated_decode_ns(model: ImageClassifier, times: int) -> int:
    """What augmentation takes in passes after the first one, which decoding includes."""
    values = 3 * model.pixels**2 * model.batch_size
    return max(0, model.augment_passes * times - 1) * values * PASS_PS_A_VALUE // 1000


def chunk_decode_ns(model: ImageClassifier, shuffled_q16: int) -> int:
    """What decompressing the chunks of a batch takes."""
    values = 3 * model.pixels**2 * model.chunk_images
    return chunks_q16(model, shuffled_q16) * (values * CHUNK_PS_A_VALUE // 1000) >> 16


def chunks_q16(model: ImageClassifier, shuffled_q16: int) -> int:
    """Chunks that are read for a batch: those of all images but of which follow on another.

    Workers take batches in turn, so each of them reads a chunk that two of them scan.
    """
    in_order_q16 = (ONE - shuffled_q16) ** 2 >> 16
    scanned_q16 = ONE * model.batch_size // model.chunk_images * max(1, min(model.workers, 2))
    return model.batch_size * (ONE - in_order_q16) + (scanned_q16 * in_order_q16 >> 16)


def _unpack_chunks(job: Job, model: ImageClassifier, twin: Twin) -> None:
    """Chunks are decompressed to read an image of them, unless it is the one read last."""
    shuffled_q16, loader = round(twin.knobs["remapped_share"] * ONE), job.loader
    values = 3 * model.pixels**2 * model.chunk_images
    loader.decode_ns += chunk_decode_ns(model, shuffled_q16)
    loader.read_bytes = chunks_q16(model, shuffled_q16) * (values * COMPRESSED_Q16 >> 16) >> 16


def _store(job: Job, twin: Twin) -> None:
    """All workers of the job share one storage."""
    rate = twin.knobs["storage_bytes_per_s"]
    shared = UNLIMITED if rate == float("inf") else round(rate)
    job.machine = replace(job.machine, storage_bytes_per_s=shared)
    job.loader.storage_bytes_per_s = shared
