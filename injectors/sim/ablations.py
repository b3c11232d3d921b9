"""What is taken away from a healthy simulated job to see whether it then is faster.

An audit case has no reference run, so healthy means that headroom was looked for: for each cause
that diagnosers like to blame, the job is run again with the same seed and without it.
"""

from __future__ import annotations

from collections.abc import Callable

from injectors.sim.job import Job


def instant_loader(job: Job) -> None:
    """Batches take no time to fetch."""
    job.loader.decode_ns = job.loader.request_ns = 0
    job.loader.storage_bytes_per_s = 10**15


def no_checkpoints(job: Job) -> None:
    """Nothing is saved."""
    job.checkpoint.every = 0


def flawless_host(job: Job) -> None:
    """No collections, uploads, agents or retries."""
    job.host.gc_every = job.host.metric_every = job.host.retry_every = 0
    job.host.poll_every_ns = 0


def quiet_spine(job: Job) -> None:
    """No other job's traffic."""
    job.network.background.count = 0


ABLATIONS: dict[str, Callable[[Job], None]] = {
    "dataloader_cpu_bound": instant_loader,
    "sync_checkpoint": no_checkpoints,
    "python_gc_pause": flawless_host,
    "network_congestion": quiet_spine,
}
