"""The table `processes`: ranks, loader workers and other processes of every host, sampled."""

from __future__ import annotations

import numpy as np
import pandas as pd

from injectors.sim.job import Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.activity import Activity
from injectors.sim.tables.process_kinds import (
    COUNTERS,
    Kind,
    foreign_processes,
    rank_processes,
    worker_processes,
)
from injectors.sim.tables.sampling import Samples, growth

WHOLE = ("nice", "threads", "affinity")
MOST_ROWS = 30_000


def thinned(run: Run, samples: Samples, nominal_ns: int) -> Samples:
    """Return samples far enough apart that a large job's processes stay few.

    Args:
        run: What was simulated.
        samples: All of them.
        nominal_ns: What a step should take, by which the run's length is reckoned.
    """
    job = run.job
    processes = job.places.ranks * (1 + (job.loader.workers if run.program.batches else 0))
    expected = nominal_ns * job.steps // max(_interval_ns(samples), 1)
    number = 1
    while processes * expected // number > MOST_ROWS:
        number *= 2
    return samples.every(number)


def _interval_ns(samples: Samples) -> int:
    times = samples.true_ns[0]
    return int(times[-1] - times[0]) // max(len(times) - 1, 1)


def process_table(run: Run, samples: Samples, done: Activity) -> pd.DataFrame:
    """Return the rows, one a process and sample, from the second sample on."""
    kinds = [rank_processes(run, samples, done)]
    if done.batches is not None and run.job.loader.workers:
        kinds.append(worker_processes(run, samples, done))
    kinds.append(foreign_processes(run, samples, done.foreign))
    first, frames = 0, []
    for kind in kinds:
        frame, first = _frame(run, samples, kind, first)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _frame(run: Run, samples: Samples, kind: Kind, first: int) -> tuple[pd.DataFrame, int]:
    before = samples.before()[kind.host]
    there = samples.taken[kind.host] & (before >= 0)
    count = there.shape[0]
    row = np.nonzero(there)[0]
    number = first + np.arange(count)[row]
    after = first + count
    if kind.fixed["role"][0] == "loader_worker":
        generation = _generation(run, samples.true_ns[kind.host])[there]
        number += generation * count
        after += int(_generations(run.job) - 1) * count
    hosts = np.array([f"host{host}" for host in kind.host], object)
    columns = {
        "host": hosts[row],
        "time_ns": samples.clock_ns[kind.host][there],
        "process": number,
        **{name: np.array(values, object)[row] for name, values in kind.fixed.items()},
        **{name: growth(kind.counters[name], before)[there] for name in COUNTERS},
        "rss_bytes": kind.rss_bytes[there],
    }
    frame = pd.DataFrame(columns)
    whole = {"rank": "Int64", "worker": "Int64", **dict.fromkeys(WHOLE, "int64")}
    return frame.astype(whole), after


def _generations(job: Job) -> int:
    """How often the loader's workers are started, the first time included."""
    loader = job.loader
    return 1 + (job.steps - 1) // loader.epoch_steps if _ends(job) else 1


def _ends(job: Job) -> bool:
    return job.loader.epoch_steps > 0 and job.loader.respawn_ns > 0


def _generation(run: Run, times_ns: Ints) -> Ints:
    """Return how often workers have been started again by some times, (processes, samples)."""
    if not _ends(run.job):
        return np.zeros(times_ns.shape, np.int64)
    ends = run.marks["end"].max(axis=1)
    step = np.minimum(np.searchsorted(ends, times_ns, side="right"), run.job.steps - 1)
    return np.asarray(step // run.job.loader.epoch_steps, np.int64)
