"""From a twin's knobs and settings to the mechanisms of its job.

What the program of a step depends on is read from the knobs when it is compiled. Here stands the
rest: the loader, checkpoints, collections, compilations.

The times in capitals were measured by themselves, on the machine and with the versions that the
suite recorded_cpu was recorded with; no recording of a fault went into them.
"""

from __future__ import annotations

import numpy as np

from injectors.sim.job import ONE, Job
from injectors.sim.noise import NORMAL_Q16
from injectors.sim.workloads.cpu.loading import set_loader
from injectors.sim.workloads.cpu.operators import Operators, twin_of
from injectors.workloads.image_classifier import ImageClassifier
from injectors.workloads.language_model import LanguageModel

GC_NS_A_RECORD = 1_150  # collections of all generations that a record lives through
GC_EVERY = 4  # micro-batches from one full collection to the next
SAVE_BYTES_PER_S, SYNC_NS = 790_000_000, 5_500_000  # serialising and writing; waiting for the disk
PICKLE_BYTES_PER_S = 52_000_000  # as plain Python numbers, with half of the interpreter
SPREAD_Q16 = 44_170  # 0.674: of scores with a deviation of 1 / sqrt(3)
LOCKED_Q16 = ONE // 2  # that such a writer has of the interpreter
COMPILE_BLOCK_NS = 350_000_000  # of one transformer block, without generating code


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
    _route(job)
    set_loader(job)


def _save(job: Job) -> None:
    twin, saved = twin_of(job), job.checkpoint
    saved.every = twin.number("checkpoint_every")
    if not saved.every:
        return
    threaded, durable = twin.number("checkpoint_thread"), twin.number("checkpoint_durable")
    saved.bytes = round(twin.knobs["checkpoint_megabytes"] * 10**6)
    saved.bytes += model_bytes(job)
    saved.bytes_per_s = PICKLE_BYTES_PER_S if threaded else SAVE_BYTES_PER_S
    saved.asynchronous, saved.lock_share_q16 = bool(threaded), LOCKED_Q16 if threaded else 0
    if durable:
        saved.bytes += SYNC_NS * SAVE_BYTES_PER_S // 10**9


def _route(job: Job) -> None:
    """Share tokens and look-ups out as the router's bias and the popularity of rows do."""
    twin, ranks, routing = twin_of(job), job.places.ranks, job.routing
    bias, popular = twin.knobs["expert_bias"], twin.knobs["popular_lookups"]
    if bias:
        hot = favoured_q16(round(bias * ONE), ranks)
        cold = (ONE - hot) // max(ranks - 1, 1)
        routing.expert_share_q16 = dict.fromkeys(range(ranks), cold * ranks)
        routing.expert_share_q16[twin.number("expert_bias_rank")] = hot * ranks
    if popular:
        rest = ONE - round(popular * ONE)
        routing.row_share_q16 = dict.fromkeys(range(ranks), rest)
        routing.row_share_q16[twin.number("popular_rank")] = rest + ranks * (ONE - rest)


def favoured_q16(bias_q16: int, ranks: int) -> int:
    """Share of tokens whose best score is of one rank's experts, which have a bias.

    Scores are normal. With two experts on each of two ranks the difference of the best two has
    a deviation of SPREAD_Q16, which is taken for other numbers as well.
    """
    below = int(np.searchsorted(NORMAL_Q16, bias_q16 * ONE // SPREAD_Q16)) * ONE // len(NORMAL_Q16)
    return ONE * below // (below + (ranks - 1) * (ONE - below)) if ranks > 1 else ONE


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
    tries = twin.number("tuning_tries")
    if tries and isinstance(model, ImageClassifier):
        # Until all sizes are known about every other step of a trial meets a new one.
        compiler.autotune_every, compiler.autotune_ns = 2, tries * tuning_ns(job, model)


def tuning_ns(job: Job, model: ImageClassifier) -> int:
    """What trying all algorithms once takes: two of three unfold the images first."""
    make, width, edge, total = Operators(twin_of(job)), 3, model.pixels, 0
    for number in range(model.blocks):
        wider, pixels = model.channels * 2**number, model.batch_size * edge * edge
        product = make.product("try", (), (pixels, wider, 9 * width)).cost.compute_ns
        unfolded = make.pointwise("try", (), 9 * width * pixels, "copy").cost.compute_ns
        total += 2 * unfolded + 3 * product
        width, edge = wider, edge // 2
    return total
