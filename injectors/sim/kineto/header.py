"""The begin of a trace: device properties, versions, process groups."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from injectors.sim.job import Job
from injectors.sim.kineto.collectives import Group
from injectors.sim.machine import Gpu

SHARED = {"ampere": (166_912, 167_936), "sm90": (232_448, 233_472)}


@dataclass(frozen=True)
class Within:
    """The larger job that a program is a part of, as each engine of an inference server is.

    Attributes:
        first_rank: What the program's rank 0 is called there.
        ranks: How many the whole has.
    """

    first_rank: int
    ranks: int


def header(job: Job, rank: int, within: Within, groups: Iterable[Group]) -> str:
    """Write the document's begin, up to its list of events.

    Args:
        job: What was recorded.
        rank: Whose trace it is, as the program counts.
        within: What ranks are called.
        groups: Process groups that the rank is in.
    """
    gpu, per_host = job.machine.gpu, job.machine.gpus_per_host
    found: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [_properties(gpu, number) for number in range(per_host)] if gpu else [],
    }
    if within.ranks > 1:
        found["distributedInfo"] = _distributed(job, rank, within, list(groups))
    found |= {"record_shapes": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 0}
    # With spaces as the profiler writes them: some readers look for `"rank": N` in the text.
    return json.dumps(found)[:-1] + ', "traceEvents": [\n'


def _properties(gpu: Gpu, number: int) -> dict[str, Any]:
    major, minor = gpu.compute_capability
    at_most, whole = SHARED[gpu.kernels]
    return {
        "id": number,
        "name": gpu.name,
        "totalGlobalMem": gpu.memory_bytes,
        "computeMajor": major,
        "computeMinor": minor,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": gpu.multiprocessors,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": at_most,
        "sharedMemPerMultiprocessor": whole,
    }


def _distributed(job: Job, rank: int, within: Within, groups: list[Group]) -> dict[str, Any]:
    on_gpu = job.machine.gpu is not None
    found: dict[str, Any] = {
        "backend": "nccl" if on_gpu else "gloo",
        "rank": within.first_rank + rank,
        "world_size": within.ranks,
        "pg_count": len(groups),
        "pg_config": [
            {
                "pg_name": str(group.number),
                "pg_desc": group.description,
                "backend_config": "cuda:nccl" if on_gpu else "cpu:gloo,cuda:gloo",
                "pg_size": len(group.ranks),
                "ranks": list(group.ranks),
            }
            for group in groups
        ],
    }
    return found | (
        {"nccl_version": job.versions["nccl"]} if on_gpu and "nccl" in job.versions else {}
    )
