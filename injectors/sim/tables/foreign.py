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
HOG_PERIOD_NS = SECOND_NS // 10
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
    nice, duty = settings.hog_nice, settings.hog_duty_q16
    ranks = job.places.ranks_of_host(host)
    traffic = settings.memory_traffic_q16.get(host, ONE) - ONE
    hogs, streams = settings.hogs.get(host, 0), -(-4 * traffic // ONE)
    kinds = [
        (hogs, nice, _got_q16(hogs * duty, len(ranks), cores, duty), cores),
        (streams, 0, _got_q16(streams * ONE, len(ranks), cores, ONE), cores),
    ]
    for rank in ranks:
        pinned = settings.pinned_hogs.get(rank, 0)
        kinds.append((pinned, nice, _got_q16(pinned * duty, 1, 1, duty), 1))
    for number, (threads, own_nice, got, allowed) in enumerate(kinds):
        if threads and got:
            wanted = ONE if number == 1 else duty
            yield _hog(job, host, number, threads, own_nice, got, wanted, allowed)


def _hog(
    job: Job, host: int, number: int, threads: int, nice: int, got: int, wanted: int, cores: int
) -> Foreign:
    draw = noise.key(job.seed, "others", host, number)
    return Foreign(
        host=host,
        name=WORKING[draw % len(WORKING)],
        nice=nice,
        threads=threads,
        busy_ns=HOG_PERIOD_NS * got >> 16,
        period_ns=HOG_PERIOD_NS,
        phase_ns=draw % HOG_PERIOD_NS,
        delay_q16=(wanted - got) * ONE // got,
        cores=cores,
        reads=False,
        rss_bytes=(200 + draw % 800) * MIB,
    )


def _got_q16(wanted_q16: int, ranks: int, cores: int, duty_q16: int) -> int:
    """Share of its time that each of some threads has a core, if all are treated alike.

    Args:
        wanted_q16: Cores that all of them would use.
        ranks: Threads of the job beside them.
        cores: What there is.
        duty_q16: Share of its time that each would run.
    """
    wanted = wanted_q16 + ranks * ONE
    return duty_q16 * min(cores * ONE, wanted) // wanted
