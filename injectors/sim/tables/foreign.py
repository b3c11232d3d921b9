"""Processes on the job's hosts that do not belong to it: agents everywhere, and sometimes others.

Every host has agents that read counters at their intervals, and on some hosts one works at low
priority. What takes cores, memory bandwidth or the driver's lock from the job are processes, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints

SECOND_NS = 10**9
MIB = 2**20
AGENTS = (("node_exporter", 1000, 9), ("dcgm-exporter", 1000, 6), ("fluent-bit", 500, 4))
UNNAMED = "system"  # what recorders call what they don't know
WORKING = ("java", "ffmpeg", "rsync", "cc1plus", "mongod", "node", "clang", "postgres")
LOW_Q16 = ONE // 5  # of the hosts have one
DELAY_Q16 = 164  # 0.25 %: anybody waits for a core now and then
READ_NS_A_BYTE = 1_000  # an agent reads a megabyte in a CPU second


@dataclass(frozen=True)
class Foreign:
    """A process that is busy for `busy_ns` of every `period_ns` on each of its threads.

    Attributes:
        host: Where it runs.
        name, nice, threads: As the kernel tells.
        busy_ns, period_ns, phase_ns: When its threads are busy.
        delay_q16: Time that a thread waits for a core for each unit that it has one.
        cores: CPUs that it may run on.
        reads: Whether it reads all the while, as agents do.
        rss_bytes: Its memory.
    """

    host: int
    name: str
    nice: int
    threads: int
    busy_ns: int
    period_ns: int
    phase_ns: int
    delay_q16: int
    cores: int
    reads: bool
    rss_bytes: int

    def cpu_ns(self, times_ns: Ints) -> Ints:
        """Return its CPU time until some times."""
        rounds, over = np.divmod(times_ns + self.phase_ns, self.period_ns)
        first = min(self.phase_ns, self.busy_ns)
        each = rounds * self.busy_ns + np.minimum(over, self.busy_ns) - first
        return np.asarray(each * self.threads)

    def delay_ns(self, times_ns: Ints) -> Ints:
        """Return the time that its threads have been runnable without a core."""
        return self.cpu_ns(times_ns) * self.delay_q16 >> 16


def foreign(job: Job) -> Iterator[Foreign]:
    """Yield the processes of all hosts, host after host."""
    for host in range(job.places.hosts):
        yield from _agents(job, host)
        yield from _low(job, host)
        yield from _hogs(job, host)


def _agents(job: Job, host: int) -> Iterator[Foreign]:
    for name, period_ms, busy_ms in AGENTS:
        period, busy = period_ms * 10**6, busy_ms * 10**6
        phase = noise.key(job.seed, "agent's phase", name, host) % period
        if name == "dcgm-exporter" and host in job.host.polled_hosts and job.host.poll_ns:
            period, busy = job.host.poll_every_ns, busy + job.host.poll_ns
            clockwork = noise.key(job.seed, "clockwork", host) >> 48
            phase = clockwork * period >> 16
        rss = 30 * MIB + noise.key(0, name) % (60 * MIB)
        cores = job.machine.cores
        busy = min(busy, period)
        yield Foreign(host, name, 0, 1, busy, period, phase, DELAY_Q16, cores, True, rss)


def _low(job: Job, host: int) -> Iterator[Foreign]:
    draw = noise.key(job.seed, "low priority", host)
    if draw >> 48 < LOW_Q16:
        share = 20 + draw % 40
        cores = job.machine.cores
        period = SECOND_NS // 5
        busy = period * share // 100
        phase, rss = draw % period, 90 * MIB
        yield Foreign(host, UNNAMED, 19, 1, busy, period, phase, DELAY_Q16, cores, False, rss)


def _hogs(job: Job, host: int) -> Iterator[Foreign]:
    """What the job's own parameters say that others do on the host."""
    settings, cores = job.host, job.machine.cores
    traffic = settings.memory_traffic_q16.get(host, ONE) - ONE
    pinned = [
        count
        for rank, count in settings.pinned_hogs.items()
        if job.places.host(rank) == host
    ]  # fmt: skip
    kinds = (
        (settings.hogs.get(host, 0), settings.hog_nice, settings.hog_duty_q16, cores),
        (sum(pinned), settings.hog_nice, settings.hog_duty_q16, 1),
        (-(-4 * traffic // ONE), 0, ONE, cores),
    )
    period = SECOND_NS // 10
    for kind, (threads, nice, duty, allowed) in enumerate(kinds):
        if threads < 1 or duty < 1:
            continue
        draw = noise.key(job.seed, "others", host, kind)
        got = _got_q16(job, host, threads, duty, allowed)
        name, phase = WORKING[draw % len(WORKING)], draw % period
        busy, delay = period * got >> 16, (duty - got) * ONE // got
        rss = (200 + draw % 800) * MIB
        yield Foreign(
            host, name, nice, threads, busy, period, phase, delay, allowed, False, rss
        )  # fmt: skip


def _got_q16(job: Job, host: int, threads: int, duty_q16: int, allowed: int) -> int:
    """Share of its time that each of some busy threads gets a core."""
    if allowed == 1:
        return duty_q16 // 2
    wanted = len(job.places.ranks_of_host(host)) * ONE + threads * duty_q16
    return duty_q16 * min(job.machine.cores * ONE, wanted) // wanted
