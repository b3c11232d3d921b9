"""How fast Kineto traces of a simulated run are written, gzip included, on one core.

The job is as large as those of cases: a transformer of 8 ranks of which 4 are traced for 10 steps.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable

from injectors.sim.job import Job
from injectors.sim.kineto import write_traces
from injectors.sim.kineto.packing import packed
from injectors.sim.machine import MACHINES
from injectors.sim.run import Run, simulate
from injectors.sim.workloads import SIMULATED
from tests.bench.figure import Figure

TRACED, STEPS, ROUNDS = (0, 2, 3, 5), 10, 7
SECONDS_A_MILLION = 0.5  # 2 million events a second
TIMES_GZIP = 3.0
BYTES_AN_EVENT = 25.0


def measure() -> list[Figure]:
    """CPU time of emission: of a million events, and over that of the compression alone."""
    run = _run()
    traces = write_traces(run, TRACED)
    texts = [gzip.decompress(trace) for trace in traces.values()]
    events = sum(text.count(b'{"ph":') for text in texts)
    emitting = _cpu_seconds(lambda: write_traces(run, TRACED))
    packing = _cpu_seconds(lambda: [packed([text]) for text in texts])
    size = sum(map(len, traces.values()))
    return [
        Figure(
            "emitting a million events, gzipped, CPU s", 1e6 * emitting / events, SECONDS_A_MILLION
        ),
        Figure("emitting a trace / gzip alone, CPU time", emitting / packing, TIMES_GZIP),
        Figure("an emitted event, gzipped bytes", size / events, BYTES_AN_EVENT),
    ]


def _run() -> Run:
    machine, workload = MACHINES["h100"], SIMULATED["ddp_transformer"]()
    job = Job(workload, machine, workload.places(8, machine), 5, STEPS + 2, STEPS)
    workload.set_up(job)
    return simulate(job, workload.compile(job), TRACED)


def _cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of the fastest of a few rounds: other processes share the caches."""
    work()
    times = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times)
