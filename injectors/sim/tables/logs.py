"""The table `logs`: what a training job prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from cases.tables import TABLES
from injectors.recorder.rank import LOG_EVERY
from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.run import Run
from injectors.sim.tables.checkpoints import saved_steps
from injectors.sim.tables.nccl_words import nccl_lines
from injectors.sim.tables.placement import rank_cores
from injectors.sim.tables.runtime import eager_functions

RECOMPILE_LIMIT = 8
LOSS_AT_FIRST, LOSS_AT_LAST, LOSS_HALVED_STEPS = 8_400, 2_300, 150  # in thousandths
LOSS_NOISE = 60
MEGABYTE = 10**6


class Line(NamedTuple):
    """One line, its time in simulated ns."""

    rank: int
    time_ns: int
    level: str
    message: str


def log_table(run: Run, clocks: Clocks) -> pd.DataFrame:
    """Return the lines in order, in the hosts' times."""
    lines = [*_start(run), *_progress(run), *_checkpoints(run)]
    frame = pd.DataFrame(lines, columns=list(TABLES["logs"].columns))
    ranks = frame["rank"].to_numpy(np.int64)
    frame["time_ns"] = clocks.of_hosts(frame["time_ns"].to_numpy(np.int64), clocks.host[ranks])
    return frame.sort_values(list(TABLES["logs"].order), ignore_index=True)


def _start(run: Run) -> Iterator[Line]:
    """Lines from before the recording, which stand at its begin."""
    for message in nccl_lines(run.job):
        yield Line(0, 0, "INFO", message)
    workers = run.job.loader.workers if run.program.batches else 0
    for rank in range(run.job.places.ranks):
        cores = rank_cores(run.job, rank)
        if workers > cores:
            yield Line(
                rank, 0, "WARNING",
                f"This DataLoader will create {workers} worker processes in total. Our suggested"
                f" max number of worker in current system is {cores}, which is smaller than what"
                " this DataLoader is going to create.",
            )  # fmt: skip
    if functions := eager_functions(run):
        yield Line(
            0, 0, "WARNING",
            f"torch._dynamo hit config.recompile_limit ({RECOMPILE_LIMIT})"
            f" function: '{functions[0]}'",
        )  # fmt: skip


def _progress(run: Run) -> Iterator[Line]:
    """Loss and pace, told by rank 0 as recorded jobs do."""
    taken = [int(length) for length in run.step_ns[:, 0]]
    for end in range(LOG_EVERY, run.job.steps + 1, LOG_EVERY):
        mean_ms = sum(taken[end - LOG_EVERY : end]) / LOG_EVERY / 1e6
        message = f"step {end}: loss {_loss(run.job.seed, end):.3f}, {mean_ms:.1f} ms/step"
        yield Line(0, int(run.marks["end"][end - 1, 0]), "INFO", message)


def _loss(seed: int, step: int) -> float:
    """A loss that falls as losses do; nothing follows from it."""
    fallen = (LOSS_AT_FIRST - LOSS_AT_LAST) * LOSS_HALVED_STEPS // (LOSS_HALVED_STEPS + step)
    drawn = noise.normal_q16(noise.keys(seed, "loss", step), LOSS_NOISE)
    return (LOSS_AT_LAST + fallen + int(drawn[0])) / 1000


def _checkpoints(run: Run) -> Iterator[Line]:
    """The first rank that saves tells of it, where the step ends that began it."""
    saved = run.job.checkpoint
    if not saved.every:
        return
    rank = 0 if saved.ranks is None else saved.ranks[0]
    size = f"{saved.bytes // MEGABYTE} MB"
    for step in saved_steps(run):
        at = int(run.marks["end"][step, rank])
        word = "saving" if saved.asynchronous else "saved"
        yield Line(rank, at, "INFO", f"{word} checkpoint of {size} after step {step}")
