"""What the clocks of hosts show: each is a little off, and a little fast or slow.

Everything that a host writes down (tables, traces, logs) carries its own clock's time. Hosts are
kept in step by PTP as in a cluster: tens of microseconds apart, less than a part per million in
rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.job import Job
from injectors.sim.noise import Ints

OFFSET_SIGMA_NS = 30_000
DRIFT_SIGMA_PPB = 300
PER_BILLION = 10**9


@dataclass(frozen=True)
class Clocks:
    """Offsets and drifts of the hosts' clocks.

    Attributes:
        offset_ns: (hosts,), at time zero; the smallest is 0, so that no time is negative.
        drift_ppb: (hosts,), ns that a clock gains in a second.
        host: (ranks,), host of each rank.
    """

    offset_ns: Ints
    drift_ppb: Ints
    host: Ints

    def of_ranks(self, times_ns: Ints) -> Ints:
        """Read the clocks of the ranks' hosts; the last axis of `times_ns` is the rank."""
        return self.of_hosts(times_ns, self.host)

    def of_hosts(self, times_ns: Ints, hosts: Ints) -> Ints:
        """Read the clocks of `hosts` at `times_ns`, arrays of shapes that fit each other."""
        gained = times_ns * self.drift_ppb[hosts] // PER_BILLION
        return np.asarray(times_ns + self.offset_ns[hosts] + gained)


def clocks(job: Job) -> Clocks:
    """Draw the clocks of a job's hosts."""
    hosts = np.arange(job.places.hosts)
    offsets = np.abs(noise.normal_q16(noise.keys(job.seed, "clock", hosts), OFFSET_SIGMA_NS))
    drifts = noise.normal_q16(noise.keys(job.seed, "clock drift", hosts), DRIFT_SIGMA_PPB)
    of_rank = np.asarray([job.places.host(rank) for rank in range(job.places.ranks)], np.int64)
    return Clocks(offsets - offsets.min(), drifts, of_rank)
