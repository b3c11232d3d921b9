"""What stands around the events: the header, names of tracks, marks of the profiler itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from injectors.sim.job import Job
from injectors.sim.kineto import lanes
from injectors.sim.kineto.collectives import Group
from injectors.sim.kineto.events import PROCESS, text
from injectors.sim.machine import Gpu
from injectors.sim.program import Stream, Thread

SHARED = {"ampere": (166_912, 167_936), "sm90": (232_448, 233_472)}
DEVICE_ORDER, SPANS_ORDER = 5_000_000, 0x20000000
PROFILER = "PyTorch Profiler"
THREADS = {Thread.MAIN: "python", Thread.AUTOGRAD: "pt_autograd_0"}
BEFORE_NS, AFTER_NS = 90_000, 4_000_000  # the profiler starts a little earlier, and stops later


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


def tracks(job: Job, streams: Iterable[Stream], start_ns: int) -> list[str]:
    """Write the names and order of processes, threads and streams."""
    gpu = job.machine.gpu
    at_us = microseconds(start_ns)
    if gpu is None:
        names = {lanes.CPU_PROCESS: "python"} | {
            lanes.GLOO_FIRST + int(stream): lanes.GLOO_NAME for stream in streams
        }
        found = _process(at_us, lanes.CPU_PROCESS, "CPU", lanes.CPU_PROCESS)
        for number, name in names.items():
            found += _track(at_us, lanes.CPU_PROCESS, number, f"thread {number} ({name})")
        return found
    found = _process(at_us, PROCESS, "CPU", PROCESS)
    for number in range(job.machine.gpus_per_host):
        found += _process(at_us, number, f"GPU {number}", DEVICE_ORDER + number)
    return found


def _process(at_us: str, number: int, label: str, order: int) -> list[str]:
    return [
        _mark("process_name", at_us, number, 0, {"name": "python"}),
        _mark("process_labels", at_us, number, 0, {"labels": label}),
        _mark("process_sort_index", at_us, number, 0, {"sort_index": order}),
    ]


def gpu_tracks(device: int, streams: Iterable[Stream], start_ns: int) -> list[str]:
    """Write the names of a GPU job's threads and streams."""
    at_us = microseconds(start_ns)
    found = []
    for stream in streams:
        number = lanes.STREAMS[stream]
        found += _track(at_us, device, number, f"stream {number} ")
    for thread, name in THREADS.items():
        number = PROCESS + int(thread)
        found += _track(at_us, PROCESS, number, f"thread {number} ({name})")
    return found


def _track(at_us: str, process: int, number: int, name: str) -> list[str]:
    return [
        _mark("thread_name", at_us, process, number, {"name": name}),
        _mark("thread_sort_index", at_us, process, number, {"sort_index": number}),
    ]


def _mark(name: str, at_us: str, process: int, thread: int, args: dict[str, Any]) -> str:
    head = f'{{"ph":"M","name":"{name}","ts":{at_us},"pid":{process},"tid":{thread}'
    return f'{head},"args":{text(args)}}}'


def profiler_marks(start_ns: int, end_ns: int) -> list[str]:
    """Write the profiler's own span, and its marks of begin and end, around the steps."""
    began_ns = max(start_ns - BEFORE_NS, 0)
    start_us, end_us = microseconds(began_ns), microseconds(end_ns + AFTER_NS)
    lasted_us = microseconds(end_ns - began_ns)
    head = f'{{"ph":"X","cat":"Trace","name":"{PROFILER} (0)","pid":"Spans","tid":"{PROFILER}"'
    order = f'"args":{{"sort_index":{SPANS_ORDER}}}'
    return [
        f'{head},"ts":{start_us},"dur":{lasted_us},"args":{{"Op count":0}}}}',
        f'{{"ph":"M","name":"process_sort_index","ts":{start_us},"pid":"Spans","tid":0,{order}}}',
        f'{{"ph":"i","s":"g","name":"Iteration Start: {PROFILER}","pid":"Traces",'
        f'"tid":"Trace {PROFILER}","ts":{start_us}}}',
        f'{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{end_us}}}',
    ]


def microseconds(time_ns: int) -> str:
    """Write a time >= 0 in us with three decimals.

    >>> microseconds(1234567)
    '1234.567'
    """
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"
