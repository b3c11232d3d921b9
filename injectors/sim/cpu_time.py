"""How much longer host work takes where cores are shared, slow, or taken away.

What goes on all the time (a lower frequency, remote memory, more threads of the job than cores)
is a factor. What comes in turns (foreign threads, a quota, an interpreter's lock) takes the core
away now and then: `lost` CPU time for each unit of it, in stalls of a typical length.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isqrt

import numpy as np

from injectors.sim.expected import Expected
from injectors.sim.job import ONE, Job
from injectors.sim.program import Ints

# The kernel's weight of a thread by its nice value, 0 to 19 (sched_prio_to_weight).
WEIGHTS = (
    *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
)
QUANTUM_NS = 3_500_000  # for which the scheduler lets a thread run beside others
PERIOD_NS = 100_000_000  # over which the kernel counts a quota
REMOTE_HOST_Q16, REMOTE_WORKER_Q16 = 70779, 75366  # 1.08 and 1.15: the other socket's memory
THREADS_Q16 = 26870  # 0.41: own measurements, 8 and 32 threads on a quarter of the cores
DAEMONS_Q16, DAEMONS_NS = 200, 400_000  # 0.3 % of the time, as on any host
LONGEST_NS = 10**9


@dataclass
class Losses:
    """What takes cores away; arrays of int64, (ranks,).

    Attributes:
        lost_q16: Time without the core for each unit of CPU time.
        often_q16: Stalls in each second of CPU time.
    """

    lost_q16: Ints
    often_q16: Ints

    def add(self, lost_q16: Ints, stall_ns: Ints | int) -> None:
        """Add a cause that takes so much, in stalls of a mean length."""
        self.lost_q16 += lost_q16
        self.often_q16 += lost_q16 * 10**9 // np.maximum(stall_ns, 1)

    def preemption(self, chance_ns: Ints) -> tuple[Ints, Ints]:
        """Turn losses into the chance that each piece of CPU time is followed by a stall.

        Args:
            chance_ns: (ranks,), CPU time of a piece.

        Returns:
            (chance_q16, longest_ns): with stalls of half of `longest_ns` on average the pieces
            lose what they should.
        """
        chance = np.minimum(self.often_q16 * chance_ns // 10**9, ONE)
        chance = np.where(self.lost_q16 > 0, np.maximum(chance, 1), 0)
        lost_ns = self.lost_q16 * chance_ns  # Q16
        longest = np.where(chance > 0, 2 * lost_ns // np.maximum(chance, 1), 0)
        return chance, np.minimum(longest, LONGEST_NS)


@dataclass
class CpuTime:
    """Host conditions that hold for the whole job; arrays of int64, (ranks,).

    Attributes:
        host_q16: Time of the ranks' threads over nominal.
        worker_q16: CPU time of the loader's workers over nominal, losses included.
        losses: Of the ranks' threads.
        crowd_q16: Runnable threads of the job over the cores, at least 1.
        foreign_q16, throttled_q16: Time that foreign threads, and a quota, take the core away for
            each unit of CPU time.
    """

    host_q16: Ints
    worker_q16: Ints
    losses: Losses = field(repr=False)
    crowd_q16: Ints
    foreign_q16: Ints
    throttled_q16: Ints


def cpu_time(job: Job, expected: Expected) -> CpuTime:
    """Work out the host conditions of a job."""
    ranks = job.places.ranks
    host_q16, worker_q16 = _steady(job)
    losses = Losses(np.zeros(ranks, np.int64), np.zeros(ranks, np.int64))
    losses.add(np.full(ranks, DAEMONS_Q16, np.int64), DAEMONS_NS)
    crowd_q16, foreign_q16 = _crowds(job, expected)
    losses.add(foreign_q16, np.maximum(foreign_q16 * QUANTUM_NS >> 16, QUANTUM_NS // 4))
    throttled_q16, held_ns = _throttled(job, expected)
    losses.add(throttled_q16, held_ns)
    host_q16 = host_q16 * crowd_q16 >> 16
    worker_q16 = (worker_q16 * crowd_q16 >> 16) * (ONE + foreign_q16) >> 16
    worker_q16 = worker_q16 * (ONE + throttled_q16) >> 16
    return CpuTime(host_q16, worker_q16, losses, crowd_q16, foreign_q16, throttled_q16)


def _steady(job: Job) -> tuple[Ints, Ints]:
    """Frequency, memory and threads: factors of the ranks and of their workers."""
    host, places = job.host, job.places
    found = np.full((2, places.ranks), ONE, np.int64)
    processes = 1 + job.loader.workers
    for rank in range(places.ranks):
        here = places.host(rank)
        frequency = host.frequency_q16.get(here, ONE)
        traffic = host.memory_traffic_q16.get(here, ONE) - ONE
        slower = ONE * ONE // frequency
        found[0, rank] = _scaled(slower, ONE + traffic // 4, threads_q16(job, 1))
        found[1, rank] = _scaled(slower, ONE + traffic // 2, threads_q16(job, processes))
        if rank in host.remote_memory:
            found[:, rank] = found[:, rank] * (REMOTE_HOST_Q16, REMOTE_WORKER_Q16) >> 16
    return found[0], found[1]


def threads_q16(job: Job, processes: int) -> int:
    """How much longer operators take whose threads are more than the cores.

    Work is conserved, but a part that has no core yet holds all others up; measured, the factor
    grows with the root of threads over cores.
    """
    threads = job.host.threads * processes * job.places.per_host
    if job.host.threads < 2 or threads <= job.machine.cores:
        return ONE
    root_q16 = isqrt(threads * ONE * ONE // job.machine.cores)
    return ONE + (THREADS_Q16 * (root_q16 - ONE) >> 16)


def _crowds(job: Job, expected: Expected) -> tuple[Ints, Ints]:
    """Of each rank: runnable threads of the job over cores, and what foreign ones take beyond."""
    host, places = job.host, job.places
    weight = WEIGHTS[max(0, min(host.hog_nice, len(WEIGHTS) - 1))]
    hog_q16 = host.hog_duty_q16 * weight // WEIGHTS[0]
    busy_q16 = ONE + busy_workers_q16(job, expected)
    ranks_on = Counter(places.host(rank) for rank in range(places.ranks))
    crowd = np.full(places.ranks, ONE, np.int64)
    foreign = np.zeros(places.ranks, np.int64)
    for rank in range(places.ranks):
        own = busy_q16 * ranks_on[places.host(rank)]
        crowd[rank] = max(ONE, own // job.machine.cores)
        hogs = host.hogs.get(places.host(rank), 0) * hog_q16
        beyond = max((own + hogs) // job.machine.cores, crowd[rank])
        foreign[rank] = beyond * ONE // crowd[rank] - ONE
        foreign[rank] += host.pinned_hogs.get(rank, 0) * hog_q16
    sharing = list(host.shared_core)
    foreign[sharing] += (len(sharing) - 1) * ONE if sharing else 0
    return crowd, foreign


def busy_workers_q16(job: Job, expected: Expected) -> int:
    """Workers of a rank that are busy at a time, on average."""
    loader = job.loader
    share = loader.decode_ns * ONE // max(expected.step_ns, loader.decode_ns, 1)
    return min(share * max(loader.workers, 1), loader.workers * ONE)


def _throttled(job: Job, expected: Expected) -> tuple[Ints, Ints]:
    """Of each rank: time that a quota holds it back, and how long at a time."""
    ranks = job.places.ranks
    lost, held = np.zeros(ranks, np.int64), np.ones(ranks, np.int64)
    needed = ONE + busy_workers_q16(job, expected)
    for rank, quota in job.host.quota_q16.items():
        if quota < needed:
            lost[rank] = needed * ONE // max(quota, 1) - ONE
            held[rank] = PERIOD_NS - PERIOD_NS * quota // needed
    return lost, held


def _scaled(*factors_q16: int) -> int:
    found = ONE
    for factor in factors_q16:
        found = found * factor >> 16
    return found
