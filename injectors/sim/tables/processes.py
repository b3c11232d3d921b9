"""The table `processes`: ranks, loader workers and other processes of every host, sampled."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd

from injectors.sim.job import Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.activity import Activity
from injectors.sim.tables.process_kinds import (
    Counters,
    Kind,
    foreign_processes,
    rank_processes,
    worker_processes,
)
from injectors.sim.tables.sampling import Samples, growth, interval_ns

TYPES = {
    "rank": "Int64",
    "worker": "Int64",
    "nice": "int64",
    "threads": "int64",
    "affinity": "int64",
}
MOST_ROWS, LEAST_SAMPLES = 30_000, 10


def thinned(run: Run, samples: Samples, nominal_ns: int) -> Samples:
    """Return samples far enough apart that a large job's processes stay few.

    Args:
        run: What was simulated.
        samples: All of them.
        nominal_ns: What a step should take, by which the run's length is reckoned.
    """
    job, number = run.job, 1
    workers = job.loader.workers if run.program.batches else 0
    expected = nominal_ns * job.steps // interval_ns(job)
    while job.places.ranks * (1 + workers) * expected // number > MOST_ROWS:
        if expected // (2 * number) < LEAST_SAMPLES:
            break
        number *= 2
    return samples.every(number)


def process_table(run: Run, samples: Samples, done: Activity) -> pd.DataFrame:
    """Return the rows, one a process and sample, from the second sample on."""
    kinds = [rank_processes(run, samples, done)]
    if done.batches is not None and run.job.loader.workers:
        kinds.append(worker_processes(run, samples, done))
    kinds.append(foreign_processes(samples, done.foreign))
    numbers = [_numbers(run, samples, kind) for kind in kinds]
    firsts = np.cumsum([0, *(int(own.max()) + 1 for own in numbers)])
    frames = [
        _frame(samples, kind, own + first)
        for kind, own, first in zip(kinds, numbers, firsts, strict=False)
    ]
    return pd.concat(frames, ignore_index=True)


def _frame(samples: Samples, kind: Kind, numbers: Ints) -> pd.DataFrame:
    before = samples.before()[kind.host]
    there = samples.taken[kind.host] & (before >= 0)
    row = np.nonzero(there)[0]
    columns = {
        "host": np.array([f"host{host}" for host in kind.host], object)[row],
        "time_ns": samples.clock_ns[kind.host][there],
        "process": numbers[there],
        "role": kind.role,
        **{name: np.array(values, object)[row] for name, values in kind.fixed.items()},
        **{
            field.name: growth(getattr(kind.counters, field.name), before)[there]
            for field in fields(Counters)
        },
        "rss_bytes": kind.rss_bytes[there],
    }
    return pd.DataFrame(columns).astype(TYPES)


def _numbers(run: Run, samples: Samples, kind: Kind) -> Ints:
    """Number processes within their kind, (processes, samples): workers are anew in each epoch."""
    times = samples.true_ns[kind.host]
    number = np.broadcast_to(np.arange(len(times))[:, None], times.shape)
    if kind.role != "loader_worker" or not _renewed(run.job):
        return number
    ends = run.marks["end"].max(axis=1)
    step = np.minimum(np.searchsorted(ends, times, side="right"), run.job.steps - 1)
    return np.asarray(number + step // run.job.loader.epoch_steps * len(times))


def _renewed(job: Job) -> bool:
    return job.loader.epoch_steps > 0 and job.loader.respawn_ns > 0
