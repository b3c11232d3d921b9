"""A recording of a server: its tables, and traces of some ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from cases.bundle import RunData
from injectors.sim.job import Job
from injectors.sim.kineto import Within, write_traces
from injectors.sim.run import Run
from injectors.sim.serving.collected import EngineLog
from injectors.sim.serving.measure import mean_seconds, run_in_tokens
from injectors.sim.serving.replica import Replica, Step
from injectors.sim.serving.server import Server
from injectors.sim.serving.setup import server
from injectors.sim.serving.tables.engine import engine_table
from injectors.sim.serving.tables.hosts import engine_tables, together, words_before
from injectors.sim.serving.tables.network import network_table
from injectors.sim.serving.tables.requests import request_table
from injectors.sim.serving.tables.steps import log_table, step_table

ENGINE_STEPS = 3  # that are profiled for each profiled step of the job


@dataclass(frozen=True)
class Recording:
    """A server that has been run, and what was kept of it.

    Attributes:
        ends_ns: When the recording began and each step of the job ended.
        tokens: Generated in each step.
        steps: Of each engine, those of the recording.
        runs: Of each engine, of these steps, in time since the recording began.
    """

    job: Job
    server: Server
    ends_ns: list[int]
    tokens: list[int]
    steps: list[list[Step]]
    runs: list[Run]


def record_serving(job: Job, sampled: Sequence[int]) -> tuple[RunData, float]:
    """Run the job; returns what is recorded of it, and mean seconds of a generated token.

    Args:
        job: What to run.
        sampled: Ranks that get traces.
    """
    found = run_server(job, sampled)
    return RunData(tables(found), traces(found, sampled)), mean_seconds(job, found.ends_ns)


def run_server(job: Job, sampled: Sequence[int], backend: str = "auto") -> Recording:
    """Serve until the recording's end, and keep what tables and traces are made of."""
    logs: dict[str, EngineLog] = {}
    serving = server(job, backend, lambda replica, step: logs[replica.name].note(step))
    for number, replica in enumerate(serving.replicas):
        logs[replica.name] = _log_of(job, replica, number, sampled)
    warm = run_in_tokens(job)
    ends, counts = [serving.warm_up(warm)], [serving.tokens]
    for step in range(job.steps):
        ends.append(serving.advance(warm + job.serving.tokens_per_step * (step + 1)))
        counts.append(serving.tokens)
    begin = ends[0]
    firsts = [sum(s.end_ns <= begin for s in log.steps) for log in logs.values()]
    both = list(zip(logs.values(), firsts, strict=True))
    return Recording(
        job=job,
        server=serving,
        ends_ns=ends,
        tokens=[after - before for before, after in pairwise(counts)],
        steps=[log.steps[first:] for log, first in both],
        runs=[log.run(begin, first) for log, first in both],
    )


def _log_of(job: Job, replica: Replica, number: int, sampled: Sequence[int]) -> EngineLog:
    tensor = job.places.tensor
    own = [rank - number * tensor for rank in sampled if rank // tensor == number]
    return EngineLog(replica, own, ENGINE_STEPS * job.profiled_steps)


def tables(found: Recording) -> dict[str, pd.DataFrame]:
    """Return the tables by name, in the columns of cases.tables."""
    job, begin = found.job, found.ends_ns[0]
    tensor, ends = job.places.tensor, np.array(found.ends_ns, np.int64)
    made = [engine_tables(run, steps) for run, steps in zip(found.runs, found.steps, strict=True)]
    names = [replica.name for replica in found.server.replicas]
    words = {number * tensor: words_before(run) for number, run in enumerate(found.runs)}
    own = {
        "requests": request_table(found.server.requests, begin),
        "engine": engine_table(dict(zip(names, found.steps, strict=True)), begin),
        "steps": step_table(found.steps, ends, found.tokens, tensor),
        "logs": log_table(ends, words),
        **together([frames for frames, _ in made], tensor),
    }
    if job.serving.disaggregated:
        samples = [done.samples for _, done in made]
        own["network"] = network_table(job, found.server.paths.done, samples, begin)
    return own


def traces(found: Recording, sampled: Sequence[int]) -> dict[int, bytes]:
    """Return gzip-compressed Kineto traces by rank: the last steps of each rank's engine."""
    tensor = found.job.places.tensor
    made: dict[int, bytes] = {}
    for number, run in enumerate(found.runs):
        own = [rank for rank in sampled if rank // tensor == number]
        if own and run.kept:
            first = number * tensor
            within, local = Within(first, found.job.places.ranks), [rank - first for rank in own]
            written = write_traces(run, local, within=within, with_steps=False)
            made |= {rank: written[rank - first] for rank in own}
    return made
