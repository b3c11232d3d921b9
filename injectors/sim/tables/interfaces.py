"""The interfaces that ranks send over, and what the ways between them carry.

Between hosts each rank has an interface of its own host. Ranks that compute on one machine's CPUs
have network namespaces of their own, and so an interface each, unless they share a host's.
"""

from __future__ import annotations

import numpy as np

from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints


def hosts_of(job: Job) -> Ints:
    """Return the host of each rank, (ranks,)."""
    return np.array([job.places.host(rank) for rank in range(job.places.ranks)], np.int64)


def places_of(job: Job) -> Ints:
    """Return between what things ranks' bytes cross a network, (ranks,): hosts, or namespaces."""
    if job.machine.gpu is None and (job.twin is None or job.twin.hosts < 2):
        return np.arange(job.places.ranks)
    return hosts_of(job)


def path_q16(job: Job, here: int, there: int) -> int:
    """Return what the way between two places carries over the usual."""
    pair = (min(here, there), max(here, there))
    if job.twin is not None:
        ways = (pair, (here, here), (there, there))
        least = min(job.twin.limited.get(way, job.machine.nic_bytes_per_s) for way in ways)
        return max(1, min(ONE, least * ONE // job.machine.nic_bytes_per_s))
    network = job.network
    ends = (network.nic_q16.get(place, ONE) for place in pair)
    return max(1, min(*ends, network.link_q16.get(pair, ONE)))


def loss_ppm(job: Job) -> Ints:
    """Return packets in a million that are lost on the ways from each rank, (ranks,)."""
    places, others = places_of(job), max(job.places.hosts - 1, 1)
    if job.twin is not None:
        lossy = job.twin.lossy_ppm
        return np.array([lossy.get(place, 0) for place in places.tolist()], np.int64)
    return np.array(
        [
            sum(ppm for pair, ppm in job.network.loss_ppm.items() if place in pair) // others
            for place in places.tolist()
        ],
        np.int64,
    )


def foreign_bytes_per_s(job: Job) -> Ints:
    """Return what other programs send over each rank's own interface, (ranks,)."""
    found = np.zeros(job.places.ranks, np.int64)
    if job.twin is None:
        return found
    for (source, _), flows in job.twin.flows.items():
        rate = job.machine.nic_bytes_per_s * flows // (1 + flows)
        found[places_of(job) == source] += rate
    return found
