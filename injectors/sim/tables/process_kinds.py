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
RESIDENT_SIGMA_Q16, GROWN_BYTES_PER_S = 1311, 65_536
WATCH_NS, TICK_NS = 8_000_000, 400_000_000  # between wake-ups of helpers, and losses by chance
LOG_BYTES = 60  # of a step's line


@dataclass(frozen=True)
class Counters:
    """Counters since the start, (processes, samples), named as the table's columns."""

    cpu_ns: Ints
    run_delay_ns: Ints
    voluntary_switches: Ints
    involuntary_switches: Ints
    read_bytes: Ints
    write_bytes: Ints


@dataclass(frozen=True)
class Kind:
    """Processes of one kind.

    Attributes:
        role: Of all of them.
        host: (processes,).
        fixed: Columns that stay, one value a process.
        counters: What they count.
        rss_bytes: (processes, samples).
    """

    role: str
    host: Ints
    fixed: dict[str, Sequence[object]]
    counters: Counters
    rss_bytes: Ints


def rank_processes(run: Run, samples: Samples, done: Activity) -> Kind:
    """Return the ranks' own processes."""
    job, host = run.job, done.clocks.host
    ranks, on_gpu = range(job.places.ranks), job.machine.gpu is not None
    times = samples.true_ns[host]
    # OpenMP keeps a pool for each thread that computes: the main one and autograd's.
    pools = 2 * (job.host.threads - 1)
    threads = (GPU_RANK_THREADS if on_gpu else CPU_RANK_THREADS) + pools
    fixed = _fixed(
        rank=ranks,
        worker=[pd.NA] * len(ranks),
        name=["python"] * len(ranks),
        nice=[0] * len(ranks),
        threads=[threads] * len(ranks),
        affinity=[rank_cores(job, rank) for rank in ranks],
    )
    usual = GPU_RANK_MIB if on_gpu else CPU_RANK_MIB
    rss = _resident(job, "rank", times, usual)
    return Kind("rank", host, fixed, _rank_counters(run, done, times), rss)


def _rank_counters(run: Run, done: Activity, times: Ints) -> Counters:
    """gloo writes to its sockets by calls that count as written bytes; NCCL does not."""
    at, took, use = reader(run.marks["end"], times), run.step_ns, done.cpu
    calls = sum(op.label.collective is not None for op in run.program.ops)
    written = np.full_like(took, LOG_BYTES)
    if run.job.machine.gpu is None:
        written = written + done.traffic.nic_tx
    return Counters(
        cpu_ns=at.read(use.cpu_ns),
        run_delay_ns=at.read(use.delay_ns),
        voluntary_switches=at.read(4 * run.program.batches + 2 * calls + took // WATCH_NS),
        involuntary_switches=at.read(use.delay_ns // QUANTUM_NS + took // TICK_NS),
        read_bytes=at.read(np.full_like(took, LOG_BYTES // 4)),
        write_bytes=at.read(written) + written_bytes(run, times),
    )


def worker_processes(run: Run, samples: Samples, done: Activity) -> Kind:
    """Return the loader's workers, those of a rank together."""
    job, count, ranks = run.job, run.job.loader.workers, range(run.job.places.ranks)
    assert done.batches is not None
    found = worker_counters(run, done.batches, samples.true_ns[done.clocks.host])
    host = np.repeat(done.clocks.host, count)
    fixed = _fixed(
        rank=[rank for rank in ranks for _ in range(count)],
        worker=[*range(count)] * len(ranks),
        name=["pt_data_worker"] * len(host),
        nice=[0] * len(host),
        threads=[WORKER_THREADS + job.host.threads - 1] * len(host),
        affinity=[worker_cores(job)] * len(host),
    )
    counters = Counters(
        cpu_ns=found.cpu_ns,
        run_delay_ns=found.delay_ns,
        voluntary_switches=found.batches * (4 + job.loader.requests // 8),
        involuntary_switches=found.delay_ns // QUANTUM_NS + found.cpu_ns // TICK_NS,
        read_bytes=found.read_bytes,
        write_bytes=found.batches * LOG_BYTES,
    )
    rss = _resident(job, "worker", samples.true_ns[host], WORKER_MIB)
    return Kind("loader_worker", host, fixed, counters, rss)


def foreign_processes(samples: Samples, others: Sequence[Foreign]) -> Kind:
    """Return what does not belong to the job."""
    host = np.array([other.host for other in others], np.int64)
    times = samples.true_ns[host]
    fixed = _fixed(
        rank=[pd.NA] * len(others),
        worker=[pd.NA] * len(others),
        name=[other.name for other in others],
        nice=[other.nice for other in others],
        threads=[other.threads for other in others],
        affinity=[other.cores for other in others],
    )
    rss = np.array([other.rss_bytes for other in others], np.int64)[:, None]
    counters = _foreign_counters(others, times)
    return Kind("other", host, fixed, counters, np.broadcast_to(rss, times.shape))


def _foreign_counters(others: Sequence[Foreign], times: Ints) -> Counters:
    cpu = np.stack([one.cpu_ns(row) for one, row in zip(others, times, strict=True)])
    delay = np.stack([one.delay_ns(row) for one, row in zip(others, times, strict=True)])
    threads = np.array([other.threads for other in others], np.int64)[:, None]
    read = np.array([other.reads for other in others], np.int64)[:, None] * cpu // READ_NS_A_BYTE
    return Counters(
        cpu_ns=cpu,
        run_delay_ns=delay,
        voluntary_switches=times // WATCH_NS,
        involuntary_switches=threads * times // TICK_NS + delay // QUANTUM_NS,
        read_bytes=read,
        write_bytes=read // 20,
    )


def _fixed(**columns: Sequence[object]) -> dict[str, Sequence[object]]:
    return columns


def _resident(job: Job, name: str, times_ns: Ints, usual_mib: int) -> Ints:
    """Resident memory, which differs between processes and grows a little."""
    which = np.arange(len(times_ns))[:, None]
    of = noise.keys(job.seed, "resident", name, which)
    own = noise.scale_q16(usual_mib * MIB, noise.factor_q16(of, RESIDENT_SIGMA_Q16))
    return (own + times_ns // 10**9 * GROWN_BYTES_PER_S) // 4096 * 4096
