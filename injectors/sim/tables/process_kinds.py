"""Processes of one kind: what stays, what they count, and their memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.cpu_time import QUANTUM_NS
from injectors.sim.job import Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.activity import Activity
from injectors.sim.tables.checkpoints import written_bytes
from injectors.sim.tables.foreign import READ_NS_A_BYTE, Foreign
from injectors.sim.tables.placement import rank_cores, worker_cores
from injectors.sim.tables.sampling import Samples, reader
from injectors.sim.tables.workers import worker_counters

MIB = 2**20
GPU_RANK_MIB, CPU_RANK_MIB, WORKER_MIB = 6_400, 480, 900
GPU_RANK_THREADS, CPU_RANK_THREADS, WORKER_THREADS = 38, 4, 3
COUNTERS = (
    "cpu_ns",
    "run_delay_ns",
    "voluntary_switches",
    "involuntary_switches",
    "read_bytes",
    "write_bytes",
)
WATCH_NS, TICK_NS = 8_000_000, 400_000_000  # between wake-ups of helpers, and losses by chance
LOG_BYTES = 60  # of a step's line


@dataclass(frozen=True)
class Kind:
    """Processes of one kind.

    Attributes:
        host: (processes,).
        fixed: Columns that stay, one value a process.
        counters: Since the start, (processes, samples), by column.
        rss_bytes: (processes, samples).
    """

    host: Ints
    fixed: dict[str, Sequence[object]]
    counters: dict[str, Ints]
    rss_bytes: Ints


def rank_processes(run: Run, samples: Samples, done: Activity) -> Kind:
    job, use = run.job, done.cpu
    ranks = range(job.places.ranks)
    host = done.clocks.host
    times = samples.true_ns[host]
    at = reader(run.marks["end"], times)
    took = run.step_ns
    calls = sum(op.label.collective is not None for op in run.program.ops)
    waits = 4 * run.program.batches + 2 * calls + took // WATCH_NS
    on_gpu = job.machine.gpu is not None
    through_calls = at.read(done.traffic.nic_tx) if not on_gpu else 0
    threads = (GPU_RANK_THREADS if on_gpu else CPU_RANK_THREADS) + job.host.threads - 1
    counters = (
        at.read(use.cpu_ns),
        at.read(use.delay_ns),
        at.read(waits),
        at.read(use.delay_ns // QUANTUM_NS + took // TICK_NS),
        at.read(np.full_like(took, LOG_BYTES // 4)),
        at.read(np.full_like(took, LOG_BYTES)) + written_bytes(run, times) + through_calls,
    )
    return Kind(
        host=host,
        fixed={
            "role": ["rank" for _ in ranks],
            "rank": list(ranks),
            "worker": [pd.NA for _ in ranks],
            "name": ["python" for _ in ranks],
            "nice": [0 for _ in ranks],
            "threads": [threads for _ in ranks],
            "affinity": [rank_cores(job, rank) for rank in ranks],
        },
        counters=dict(zip(COUNTERS, counters, strict=True)),
        rss_bytes=_resident(job, "rank", times, GPU_RANK_MIB if on_gpu else CPU_RANK_MIB),
    )


def worker_processes(run: Run, samples: Samples, done: Activity) -> Kind:
    job, count = run.job, run.job.loader.workers
    assert done.batches is not None
    ranks = range(job.places.ranks)
    found = worker_counters(run, done.batches, samples.true_ns[done.clocks.host])
    host = np.repeat(done.clocks.host, count)
    counters = (
        found.cpu_ns,
        found.delay_ns,
        found.batches * (4 + job.loader.requests // 8),
        found.delay_ns // QUANTUM_NS + found.cpu_ns // TICK_NS,
        found.read_bytes,
        found.batches * LOG_BYTES,
    )
    each = len(host)
    return Kind(
        host=host,
        fixed={
            "role": ["loader_worker"] * each,
            "rank": np.repeat(ranks, count).tolist(),
            "worker": np.tile(np.arange(count), len(ranks)).tolist(),
            "name": ["pt_data_worker"] * each,
            "nice": [0] * each,
            "threads": [WORKER_THREADS + job.host.threads - 1] * each,
            "affinity": np.repeat([worker_cores(job, rank) for rank in ranks], count).tolist(),
        },
        counters=dict(zip(COUNTERS, counters, strict=True)),
        rss_bytes=_resident(job, "worker", samples.true_ns[host], WORKER_MIB),
    )


def foreign_processes(run: Run, samples: Samples, others: Sequence[Foreign]) -> Kind:
    host = np.array([other.host for other in others], np.int64)
    times = samples.true_ns[host]
    cpu = np.stack([one.cpu_ns(row) for one, row in zip(others, times, strict=True)])
    threads = np.array([other.threads for other in others], np.int64)[:, None]
    reads = np.array([other.reads for other in others], np.int64)[:, None]
    counters = (
        cpu,
        cpu // 400,
        times // WATCH_NS,
        threads * times // TICK_NS,
        reads * cpu // READ_NS_A_BYTE,
        reads * cpu // (20 * READ_NS_A_BYTE),
    )
    return Kind(
        host=host,
        fixed={
            "role": ["other" for _ in others],
            "rank": [pd.NA for _ in others],
            "worker": [pd.NA for _ in others],
            **{
                name: [getattr(other, attribute) for other in others]
                for name, attribute in (
                    ("name", "name"),
                    ("nice", "nice"),
                    ("threads", "threads"),
                    ("affinity", "cores"),
                )
            },
        },
        counters=dict(zip(COUNTERS, counters, strict=True)),
        rss_bytes=np.stack([np.full(times.shape[1], other.rss_bytes) for other in others]),
    )


def _resident(job: Job, name: str, times_ns: Ints, usual_mib: int) -> Ints:
    """Resident memory, which differs between processes and grows a little."""
    which = np.arange(len(times_ns))[:, None]
    spread = noise.factor_q16(noise.keys(job.seed, "resident", name, which), 1311)
    return noise.scale_q16(usual_mib * MIB, spread) + times_ns // 10**9 * 65536
