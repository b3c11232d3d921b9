"""An engine's part of the job: the same settings for its own ranks and its own host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from injectors.sim import noise
from injectors.sim.job import Gpus, Host, Job, Network, Places

BY_HOST = ("hogs", "frequency_q16", "memory_traffic_q16")  # of Host; its other tables are by rank
RANK_LISTS = ("shared_core", "remote_memory", "gc_ranks")
Settings = TypeVar("Settings", Host, Gpus, Network)


def engine_part(job: Job, engine: int) -> Job:
    """Return the job of one engine: each has a host of its own, with ranks counted from 0.

    Noise is drawn from a seed of its own, so that engines differ from each other.
    """
    tensor = job.places.tensor
    ranks = range(engine * tensor, (engine + 1) * tensor)
    tables = [field.name for field in fields(Gpus)]
    return replace(
        job,
        places=Places(ranks=tensor, per_host=tensor, tensor=tensor),
        seed=noise.key(job.seed, "engine", engine) >> 1,
        host=_host(job.host, engine, ranks),
        gpus=_by_rank(job.gpus, tables, ranks),
        network=_by_rank(job.network, ["nvlink_q16"], ranks),
    )


def _host(host: Host, engine: int, ranks: range) -> Host:
    tables = [field.name for field in fields(Host) if field.name not in BY_HOST]
    found = _by_rank(host, tables, ranks)
    for name in BY_HOST:
        here = getattr(host, name)
        setattr(found, name, {0: here[engine]} if engine in here else {})
    for name in RANK_LISTS:
        listed = getattr(host, name)
        if listed is not None:
            setattr(found, name, tuple(rank - ranks[0] for rank in listed if rank in ranks))
    found.polled_hosts = (0,) if engine in host.polled_hosts else ()
    return found


def _by_rank(settings: Settings, names: Iterable[str], ranks: range) -> Settings:
    """Copy settings; those kept by rank are cut to `ranks` and numbered from 0."""
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, dict):
            changed[name] = {rank - ranks[0]: value[rank] for rank in value if rank in ranks}
    if "device_of" in changed:
        changed["device_of"] = {r: d - ranks[0] for r, d in changed["device_of"].items()}
    return replace(settings, **changed)
