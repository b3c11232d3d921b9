"""Names of a trace's tracks, and the marks of the profiler itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from injectors.sim.job import Job
from injectors.sim.kineto import lanes
from injectors.sim.kineto.events import PROCESS, text
from injectors.sim.program import Stream, Thread

DEVICE_ORDER, SPANS_ORDER = 5_000_000, 0x20000000
PROFILER = "PyTorch Profiler"
THREADS = {Thread.MAIN: "python", Thread.AUTOGRAD: "pt_autograd_0"}
BEFORE_NS, AFTER_NS = 90_000, 4_000_000  # the profiler starts a little earlier, and stops later


def tracks(job: Job, device: int, streams: Sequence[Stream], start_ns: int) -> list[str]:
    """Write the names and order of processes, threads and streams.

    Args:
        job: What was recorded.
        device: The rank's own GPU, by its number.
        streams: Those on which something is done.
        start_ns: When the first step began.
    """
    at_us = microseconds(start_ns)
    if job.machine.gpu is None:
        return _cpu_tracks(at_us, streams)
    found = _process(at_us, PROCESS, "CPU", PROCESS)
    for number in range(job.machine.gpus_per_host):
        found += _process(at_us, number, f"GPU {number}", DEVICE_ORDER + number)
    for stream in streams:
        number = lanes.STREAMS[stream]
        found += _track(at_us, device, number, f"stream {number} ")
    for thread, name in THREADS.items():
        number = PROCESS + int(thread)
        found += _track(at_us, PROCESS, number, f"thread {number} ({name})")
    return found


def _cpu_tracks(at_us: str, streams: Sequence[Stream]) -> list[str]:
    names = {lanes.CPU_PROCESS: "python"} | {
        lanes.GLOO_FIRST + int(stream): lanes.GLOO_NAME for stream in streams
    }
    found = _process(at_us, lanes.CPU_PROCESS, "CPU", lanes.CPU_PROCESS)
    for number, name in names.items():
        found += _track(at_us, lanes.CPU_PROCESS, number, f"thread {number} ({name})")
    return found


def _process(at_us: str, number: int, label: str, order: int) -> list[str]:
    return [
        _mark("process_name", at_us, number, 0, {"name": "python"}),
        _mark("process_labels", at_us, number, 0, {"labels": label}),
        _mark("process_sort_index", at_us, number, 0, {"sort_index": order}),
    ]


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
