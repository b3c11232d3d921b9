"""Which cores processes may use."""

from __future__ import annotations

from injectors.sim.job import Job


def rank_cores(job: Job, rank: int) -> int:
    """Return how many cores a rank may run on: its share of the host's, or one that it shares."""
    if rank in job.host.shared_core or (job.twin is not None and job.twin.pinned):
        return 1
    if job.twin is not None:
        return job.machine.cores
    return max(1, job.machine.cores // job.places.per_host)


def worker_cores(job: Job) -> int:
    """Return how many cores a rank's loader workers share."""
    if job.twin is not None:
        return len(job.twin.worker_cores(job.places.ranks))
    return min(job.loader.worker_cores, max(1, job.machine.cores // job.places.per_host))
