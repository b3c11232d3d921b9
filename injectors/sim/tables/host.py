"""The table `host`: what the kernel of every host counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.activity import Activity
from injectors.sim.tables.checkpoints import written_bytes
from injectors.sim.tables.device_traffic import copied_bytes
from injectors.sim.tables.sampling import Samples, growth, reader
from injectors.sim.tables.workers import worker_counters

KERNEL_Q16 = 131  # 0.2 % of all cores: interrupts and what is too small to be told
WAKE_UP_Q16 = 328  # 0.5 % of the time some task waits for a core, on any host
QUOTA_Q16, THROTTLE_Q16, THROTTLE_NS = 8192, 1966, 1_500_000  # hosts with a quota that hardly binds
CACHED_BYTES = 40 * 2**30
LOG_WRITE_BYTES = 16_384  # of a sample, system logs
MEMORY_HOG_BYTES_PER_S = 8 * 10**9  # of a thread that does nothing else


def host_table(run: Run, samples: Samples, done: Activity) -> pd.DataFrame:
    """Return the rows, one a host and sample, from the second sample on."""
    counters = _counters(run, samples, done)
    before = samples.before()
    there = samples.taken & (before >= 0)
    grown = {name: growth(values, before) for name, values in counters.items()}
    last = np.take_along_axis(samples.true_ns, np.maximum(before, 0), axis=1)
    elapsed = np.where(before < 0, 1, samples.true_ns - last)
    columns = {
        **_bounded(run.job, elapsed, grown),
        "run_queue": _run_queue(run.job, elapsed, grown),
        **_memory(run.job, elapsed, grown),
    }
    hosts = np.nonzero(there)[0]
    return pd.DataFrame(
        {
            "host": np.array([f"host{host}" for host in range(len(there))], object)[hosts],
            "time_ns": samples.clock_ns[there],
            "cores": run.job.machine.cores,
            **{name: values[there] for name, values in columns.items()},
        }
    )


def _counters(run: Run, samples: Samples, done: Activity) -> dict[str, Ints]:
    """Counters since the start, (hosts, samples), none of them bounded by what a host has."""
    times, hosts = samples.true_ns, run.job.places.hosts
    ranks = times[done.clocks.host]
    at = reader(run.marks["end"], ranks)

    def of_hosts(of_ranks: Ints) -> Ints:
        found = np.zeros((hosts, times.shape[1]), np.int64)
        np.add.at(found, done.clocks.host, of_ranks)
        return found

    copied = copied_bytes(run)
    found = {
        "cpu_busy_ns": of_hosts(at.read(done.cpu.cpu_ns)),
        "cpu_system_ns": of_hosts(at.read(done.cpu.system_ns)),
        "cgroup_throttled_ns": of_hosts(at.read(done.cpu.throttled_ns)),
        "disk_write_bytes": of_hosts(written_bytes(run, ranks)),
        "moved_bytes": of_hosts(at.read(copied[0] + copied[1])),
        "delay_ns": of_hosts(at.read(done.cpu.delay_ns)),
        **{name: np.zeros_like(times) for name in ("disk_read_bytes", "reading_ns")},
    }
    if done.batches is not None and run.job.loader.workers:
        own, count = worker_counters(run, done.batches, ranks), run.job.loader.workers
        for name, values in (
            ("cpu_busy_ns", own.cpu_ns),
            ("delay_ns", own.delay_ns),
            ("disk_read_bytes", own.read_bytes),
            ("reading_ns", own.read_ns),
        ):
            found[name] += of_hosts(values.reshape(-1, count, times.shape[1]).sum(axis=1))
    for other in done.foreign:
        found["cpu_busy_ns"][other.host] += other.cpu_ns(times[other.host])
        found["delay_ns"][other.host] += other.delay_ns(times[other.host])
    return found


def _bounded(job: Job, elapsed: Ints, grown: dict[str, Ints]) -> dict[str, Ints]:
    """Turn growth into what a host's kernel can have counted in the time that went by."""
    hosts, numbers = np.arange(elapsed.shape[0])[:, None], np.arange(elapsed.shape[1])
    of = noise.keys(job.seed, "host", hosts, numbers)
    whole = elapsed * job.machine.cores
    kernel = noise.scale_q16(whole, KERNEL_Q16 * noise.factor_q16(of, ONE // 4) >> 16)
    busy = np.minimum(grown["cpu_busy_ns"] + kernel, whole)
    wake = elapsed * (WAKE_UP_Q16 + noise.exponential_q16(noise.extend(of, "wake"), 164)) >> 16
    has_quota = noise.uniform_q16(noise.keys(job.seed, "quota", hosts)) < QUOTA_Q16
    held = noise.uniform_q16(noise.extend(of, "held")) < THROTTLE_Q16
    written = noise.exponential_q16(noise.extend(of, "log"), LOG_WRITE_BYTES)
    return {
        "cpu_busy_ns": busy,
        "cpu_system_ns": np.minimum(grown["cpu_system_ns"] + kernel, busy),
        "cpu_iowait_ns": np.minimum(grown["reading_ns"], whole - busy),
        "cpu_steal_ns": np.zeros_like(elapsed),
        "psi_cpu_some_ns": np.minimum(grown["delay_ns"] + wake, elapsed),
        "psi_io_some_ns": _any_of(job, elapsed, grown["reading_ns"]),
        "psi_memory_some_ns": np.zeros_like(elapsed),
        "disk_read_bytes": grown["disk_read_bytes"],
        "disk_write_bytes": grown["disk_write_bytes"] + written // 4096 * 4096,
        "cgroup_throttled_ns": grown["cgroup_throttled_ns"] + has_quota * held * THROTTLE_NS,
    }


def _any_of(job: Job, elapsed: Ints, in_all_ns: Ints) -> Ints:
    """Return the time in which any of a host's workers reads, each by itself."""
    workers = max(job.loader.workers, 1) * min(job.places.per_host, job.places.ranks)
    share = np.minimum(in_all_ns * ONE // (elapsed * workers), ONE)
    none = np.full(share.shape, ONE, np.int64)
    for _ in range(workers):
        none = none * (ONE - share) >> 16
    return np.asarray(elapsed * (ONE - none) >> 16)


def _run_queue(job: Job, elapsed: Ints, grown: dict[str, Ints]) -> Ints:
    """Threads that run or wait to, at the moment of the sample."""
    hosts, numbers = np.arange(elapsed.shape[0])[:, None], np.arange(elapsed.shape[1])
    mean_q16 = (grown["cpu_busy_ns"] + grown["delay_ns"]) * ONE // elapsed
    of = noise.keys(job.seed, "run queue", hosts, numbers)
    spread = noise.factor_q16(of, ONE // 12)
    return np.asarray(np.maximum((noise.scale_q16(mean_q16, spread) + ONE // 2) >> 16, 1))


def _memory(job: Job, elapsed: Ints, grown: dict[str, Ints]) -> dict[str, Ints]:
    """Memory that is left, and traffic to it: copies, batches, and what foreign threads stream."""
    hosts, numbers = np.arange(elapsed.shape[0])[:, None], np.arange(elapsed.shape[1])
    of = noise.keys(job.seed, "memory", hosts, numbers)
    cached = min(CACHED_BYTES, job.machine.memory_bytes // 8)
    spread = noise.scale_q16(2**26, noise.factor_q16(of, ONE // 4))
    available = job.machine.memory_bytes - cached - _resident(job) - spread
    traffic = job.host.memory_traffic_q16
    threads = np.array([4 * (traffic.get(h, ONE) - ONE) for h in range(len(elapsed))], np.int64)
    streamed = (MEMORY_HOG_BYTES_PER_S >> 16) * threads[:, None]
    moved = 2 * grown["moved_bytes"] + 4 * grown["disk_read_bytes"] + grown["cpu_busy_ns"] // 2
    rate = moved * 1000 // np.maximum(elapsed // 10**6, 1) + streamed
    return {
        "memory_available_bytes": available // 4096 * 4096,
        "memory_bandwidth_bytes_per_s": rate // 4096 * 4096,
    }


def _resident(job: Job) -> int:
    """Memory of a host's ranks and workers, roughly."""
    each = 6_400 if job.machine.gpu is not None else 480
    return min(job.places.per_host, job.places.ranks) * (each + 900 * job.loader.workers) << 20
