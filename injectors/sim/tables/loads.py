"""What a step's batch holds: its tokens, and how unevenly its work falls on ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from cases.schema import Scalar
from injectors.sim import noise
from injectors.sim.job import Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.events import event_rows
from injectors.sim.tables.traffic import work_kinds, work_q16

EXPERT_SPREAD_Q16 = 2621  # of the tokens of a rank's experts, 4 %


def _number(config: Mapping[str, Scalar], *names: str) -> int:
    """Return the first of these settings that a workload has, 1 where it has none."""
    return next((int(config[name]) for name in names if name in config), 1)


def samples(job: Job) -> int:
    """Return the samples (or sequences) of a rank's step."""
    config = job.workload.config()
    each = _number(config, "micro_batch", "batch_size")
    return each * _number(config, "accumulation", "micro_batches")


def sequence(job: Job) -> int:
    """Return the tokens of a sequence, 1 where samples are no sequences."""
    return _number(job.workload.config(), "sequence", "sequence_length")


def computed_tokens(run: Run) -> Ints:
    """Return the tokens (or samples) that ranks compute, (steps, ranks), padding among them."""
    length = max(1, sequence(run.job) * run.job.framework.padded_q16 >> 16)
    return np.full(run.step_ns.shape, samples(run.job) * length, np.int64)


def load_events(run: Run) -> Iterator[pd.DataFrame]:
    """Yield rows of `runtime` on the loads of every step, where the workload has such loads."""
    rows = work_kinds(run.program)
    if "attention" in rows:
        yield from _sequence_lengths(run)
    if "experts" in rows:
        yield from _expert_tokens(run)
    if "rows" in rows:
        config = run.job.workload.config()
        looked_up = samples(run.job) * _number(config, "tables") * _number(config, "lookups")
        served = looked_up * work_q16(run, "rows") >> 16
        yield event_rows("embedding_rows", _noted_ns(run), served)


def _noted_ns(run: Run) -> Ints:
    """When the first batch of each step had come, (steps, ranks)."""
    return run.taken[:, 0] if run.program.batches else run.marks["begin"]


def _sequence_lengths(run: Run) -> Iterator[pd.DataFrame]:
    """Each micro-batch is packed to the same sum of lengths; the sum of squares is its work."""
    batches = max(run.program.batches, 1)
    total, length = samples(run.job) * sequence(run.job) // batches, sequence(run.job)
    squares = total * length * work_q16(run, "attention") >> 16
    for batch in range(batches):
        at = run.taken[:, batch] if run.program.batches else run.marks["begin"]
        yield event_rows("sequence_lengths", at, np.full(at.shape, total), detail="sum")
        yield event_rows("sequence_lengths", at, squares, detail="sum of squares")


def _expert_tokens(run: Run) -> Iterator[pd.DataFrame]:
    """Tokens that came to each expert of a rank in a step, all layers together."""
    config, places = run.job.workload.config(), run.job.places
    held = _number(config, "experts") // max(places.expert, 1)
    routed = samples(run.job) * sequence(run.job) * _number(config, "top_k")
    each = routed * work_q16(run, "experts") // held >> 16
    steps, ranks = np.arange(len(each))[:, None], np.arange(each.shape[1])
    first = ranks % places.expert * held
    for number in range(held):
        of = noise.keys(run.job.seed, "expert", number, steps, ranks)
        got = noise.scale_q16(each, noise.factor_q16(of, EXPERT_SPREAD_Q16))
        names = [f"expert {expert}" for expert in first + number]
        yield event_rows("expert_tokens", _noted_ns(run), got, detail=names)
