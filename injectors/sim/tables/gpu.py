"""The table `gpu`: what NVML says of each rank's device, as it says it.

Utilisation counts any kernel, those that spin in a collective too; power is a mean that is 25 to
125 ms old; temperatures are whole degrees; a link without work falls back to its first generation.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.job import Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.device_traffic import nvlink_bytes, pcie_bytes
from injectors.sim.tables.power import read_power_mw
from injectors.sim.tables.runtime import pauses_ns
from injectors.sim.tables.sampling import Reader, Samples, reader
from injectors.sim.tables.traffic import Traffic

KIB = 1024
USE_WINDOW_NS, LINK_WINDOW_NS = 167_000_000, 20_000_000
CONTEXT_BYTES, NEIGHBOUR_BYTES = 620 * 2**20, 5 * 2**30
MEMORY_SIGMA_Q16 = 328  # 0.5 %: ranks' caches differ
LOOK_Q16 = 655  # 1 % of the samples see a health check's process, too
BURST_SIGMA_Q16 = 13107  # 20 %: windows of 20 ms see more or less than the mean
OFF_LOAD_GENERATION = 1


def gpu_table(run: Run, samples: Samples, moved: Traffic) -> pd.DataFrame:
    """Return the rows, one a device and sample."""
    hosts = np.array([run.job.places.host(rank) for rank in range(run.job.places.ranks)])
    times, taken = samples.true_ns[hosts], samples.taken[hosts]
    at = reader(run.marks["end"], times)
    columns = {
        "rank": np.broadcast_to(np.arange(len(hosts))[:, None], times.shape),
        "time_ns": samples.clock_ns[hosts],
        **_use(run, times),
        **_memory(run, times),
        **_state(run, at, times),
        **_links(run, at, times, moved),
    }
    frame = pd.DataFrame({name: values[taken] for name, values in columns.items()})
    idle = frame["utilization_percent"] == 0
    frame.loc[idle, "pcie_generation"] = OFF_LOAD_GENERATION
    for rank, names in run.job.gpus.stuck.items():
        frame.loc[frame["rank"] == rank, list(names)] = 0
    return frame


def _use(run: Run, times: Ints) -> dict[str, Ints]:
    """Shares of the last sixth of a second, in whole percent."""
    took = run.step_ns
    kernels = _of_states(run, "kernels_ns")
    spinning = np.minimum(_of_states(run, "communication_ns"), _not_held(run) - kernels)
    busy = np.clip(kernels + np.maximum(spinning, 0), 0, took)
    memory = np.minimum(_of_states(run, "memory_ns"), took)
    begin = np.maximum(times - USE_WINDOW_NS, 0)
    now, before = reader(run.marks["end"], times), reader(run.marks["end"], begin)
    length = np.maximum(times - begin, 1)
    found = {}
    for name, used in (("utilization_percent", busy), ("memory_utilization_percent", memory)):
        share = (now.read(used) - before.read(used)) * 100 // length
        found[name] = np.clip(share, 0, 100).astype(np.float64)
    return found


def _not_held(run: Run) -> Ints:
    """Time of each step in which the host did not keep the device waiting, (steps, ranks)."""
    held = np.maximum(run.waited, 0).sum(axis=1)
    for name in run.program.pauses:
        held = held + pauses_ns(run, name)
    return np.asarray(run.step_ns - held)


def _of_states(run: Run, name: str) -> Ints:
    return np.stack([getattr(state, name) for state in run.devices])


def _memory(run: Run, times: Ints) -> dict[str, Ints]:
    gpu = run.job.machine.gpu
    assert gpu is not None
    ranks, numbers = np.arange(times.shape[0])[:, None], np.arange(times.shape[1])
    of = noise.keys(run.job.seed, "device memory", ranks)
    own = noise.scale_q16(gpu.memory_bytes, run.job.gpus.memory_used_q16)
    own = noise.scale_q16(own, noise.factor_q16(of, MEMORY_SIGMA_Q16))
    users, foreign = _users(run.job)
    used = own * users[:, None] + CONTEXT_BYTES + foreign[:, None] * NEIGHBOUR_BYTES
    looked = noise.uniform_q16(noise.keys(run.job.seed, "look", ranks, numbers)) < LOOK_Q16
    used = np.minimum(used + looked * CONTEXT_BYTES, gpu.memory_bytes - CONTEXT_BYTES // 8)
    return {
        "memory_used_bytes": used // 2**21 * 2**21,
        "memory_total_bytes": np.full(times.shape, gpu.memory_bytes),
        "processes": (users + foreign)[:, None] + looked,
    }


def _users(job: Job) -> tuple[Ints, Ints]:
    """Ranks and foreign processes on each rank's own device, (ranks,) each."""
    ranks = range(job.places.ranks)
    devices = [job.gpus.device_of.get(rank, rank) for rank in ranks]
    users = np.bincount(devices, minlength=job.places.ranks).astype(np.int64)
    return users, np.array([job.gpus.neighbours.get(rank, 0) for rank in ranks], np.int64)


def _state(run: Run, at: Reader, times: Ints) -> dict[str, Ints]:
    gpu, limits = run.job.machine.gpu, run.job.gpus.power_limit_w
    assert gpu is not None
    limit = [float(limits.get(rank, gpu.power_limit_w)) for rank in range(len(times))]
    return {
        "power_w": read_power_mw(run, times) / 1000,
        "power_limit_w": np.broadcast_to(np.array(limit)[:, None], times.shape),
        "sm_clock_mhz": at.level(_of_states(run, "clock_mhz")),
        "memory_clock_mhz": np.full(times.shape, gpu.memory_clock_mhz),
        "temperature_c": at.level(_of_states(run, "temperature_mc")) // 1000,
        "event_reasons": at.level(_of_states(run, "reasons")),
    }


def _links(run: Run, at: Reader, times: Ints, moved: Traffic) -> dict[str, Ints]:
    gpu, gpus = run.job.machine.gpu, run.job.gpus
    assert gpu is not None
    ranks, numbers = np.arange(times.shape[0])[:, None], np.arange(times.shape[1])
    before = reader(run.marks["end"], np.maximum(times - LINK_WINDOW_NS, 0))
    burst = noise.factor_q16(noise.keys(run.job.seed, "burst", ranks, numbers), BURST_SIGMA_Q16)
    found = {}
    for name, of_ranks in zip(("tx", "rx"), pcie_bytes(run, moved), strict=True):
        crossed = _of_devices(run.job, of_ranks)
        within = np.maximum(at.read(crossed) - before.read(crossed), 0)
        rate = noise.scale_q16(within, burst) * (10**9 // LINK_WINDOW_NS)
        most = gpu.pcie_bytes_per_s * np.array([gpus.pcie_q16.get(r, 65536) for r in ranks[:, 0]])
        rate = np.minimum(rate, most[:, None] >> 16)
        found[f"pcie_{name}_bytes_per_s"] = rate // KIB * KIB
    for name, of_ranks in zip(("tx", "rx"), nvlink_bytes(run, moved), strict=True):
        crossed = _of_devices(run.job, of_ranks)
        found[f"nvlink_{name}_bytes"] = at.read(crossed) // KIB * KIB
    for name, given, usual in (
        ("pcie_generation", gpus.pcie_generation, gpu.pcie_generation),
        ("pcie_width", gpus.pcie_width, 16),
    ):
        of_links = np.array([given.get(rank, usual) for rank in range(len(times))], np.int64)
        found[name] = np.broadcast_to(of_links[:, None], times.shape).copy()
    return found


def _of_devices(job: Job, of_ranks: Ints) -> Ints:
    """Give what ranks moved, (steps, ranks), to the devices that they moved it on."""
    devices = [job.gpus.device_of.get(rank, rank) for rank in range(job.places.ranks)]
    found = np.zeros_like(of_ranks)
    np.add.at(found.T, devices, of_ranks.T)
    return found
