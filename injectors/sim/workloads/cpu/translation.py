"""From a twin's knobs and settings to the mechanisms of its job.

What the program of a step depends on is read from the knobs when it is compiled. Here stands the
rest: the loader, checkpoints, collections, compilations.

The times in capitals were measured by themselves, on the machine and with the versions that the
suite recorded_cpu was recorded with; no recording of a fault went into them.
"""

from __future__ import annotations

from injectors.sim.job import ONE, Job
from injectors.sim.workloads.cpu.loading import set_loader
from injectors.sim.workloads.cpu.operators import twin_of
from injectors.workloads.language_model import LanguageModel

GC_NS_A_RECORD = 1_600  # collections of all generations that a record lives through
GC_EVERY = 4  # micro-batches from one full collection to the next
SAVE_BYTES_PER_S, SYNC_NS = 900_000_000, 9_000_000  # serialising and writing; waiting for the disk
PICKLE_BYTES_PER_S = 40_000_000  # as plain Python numbers, holding the interpreter's lock
LOCKED_Q16 = ONE // 2  # that such a writer has of the interpreter
COMPILE_BLOCK_NS = 110_000_000  # of one transformer block, without generating code


def translate(job: Job) -> None:
    """Set what follows from the twin's knobs and settings."""
    twin, host = twin_of(job), job.host
    job.framework.bucket_bytes = round(float(twin.settings.get("bucket_mb", 1.0)) * 2**20)
    host.threads = int(twin.settings.get("threads", 1))
    host.metric_every = twin.number("metrics_every")
    records = twin.number("history_records")
    if records:
        micro_batches = getattr(job.workload, "micro_batches", 1)
        host.gc_every = max(1, GC_EVERY // micro_batches)
        host.gc_ns = records * GC_NS_A_RECORD * micro_batches * host.gc_every
        host.gc_ranks = (twin.number("history_rank"),)
    _save(job)
    _compile(job)
    set_loader(job)


def _save(job: Job) -> None:
    twin, saved = twin_of(job), job.checkpoint
    saved.every = twin.number("checkpoint_every")
    if not saved.every:
        return
    threaded, durable = twin.number("checkpoint_thread"), twin.number("checkpoint_durable")
    saved.bytes = round(twin.knobs["checkpoint_megabytes"] * 10**6)
    saved.bytes += 0 if threaded else model_bytes(job)
    saved.bytes_per_s = PICKLE_BYTES_PER_S if threaded else SAVE_BYTES_PER_S
    saved.asynchronous, saved.lock_share_q16 = bool(threaded), LOCKED_Q16 if threaded else 0
    if durable:
        saved.bytes += SYNC_NS * SAVE_BYTES_PER_S // 10**9


def model_bytes(job: Job) -> int:
    """Bytes of the language model's parameters; others are small beside what is saved with them."""
    model = job.workload
    if not isinstance(model, LanguageModel):
        return 0
    return 4 * (12 * model.layers * model.d_model + 2 * model.vocabulary) * model.d_model


def _compile(job: Job) -> None:
    twin, compiler, model = twin_of(job), job.compiler, job.workload
    passes = twin.number("stage_steps")
    if passes and isinstance(model, LanguageModel):
        compiler.recompile_every = max(1, passes // model.micro_batches)
        compiler.recompile_ns = COMPILE_BLOCK_NS * model.layers
