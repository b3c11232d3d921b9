"""The `trace_events` table: its columns, and the names of Kineto's categories over the years."""

from __future__ import annotations

from cases.tables import RANK, Table

TRACE_EVENTS = Table(
    "One row per complete or instant event of a trace. Text columns are pandas categoricals,"
    " whole numbers that may be missing are nullable Int64.",
    {
        "rank": RANK,
        "name": ("text", "operator, kernel, runtime call or range"),
        "category": (
            "text",
            "Kineto's category in today's spelling; null where there is none",
        ),
        "start_ns": ("int", "start, relative to the trace's base time"),
        "duration_ns": ("int", "length; 0 for instant events"),
        "pid": ("text", "process, device number or track of the event"),
        "tid": ("text", "thread, stream or track of the event"),
        "device": ("int", "device number; null off the device"),
        "stream": ("int", "stream number; null where Kineto writes -1 or a handle"),
        "correlation": ("int", "joins a runtime call with what it launched"),
        "external_id": ("int", "joins an operator with what it launched"),
        "bytes": ("int", "bytes copied, set, or (instant [memory] events) allocated or freed"),
        "collective": ("text", "name of the collective, where the event carries one"),
        "process_group": ("text", "process group of the collective"),
        "group_size": ("int", "ranks of that group"),
        "dtype": ("text", "element type of the collective"),
        "in_elements": ("int", "elements that this rank puts in"),
        "step": ("int", "N of a ProfilerStep#N range, null for all other events"),
        "sequence_number": ("int", "joins a forward operator with its backward"),
    },
    ("rank", "start_ns"),
)

CATEGORIES: dict[str, str] = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Memory": "cpu_instant_event",
    "Python": "python_function",
    "Trace": "trace",
    "async": "ac2g",
    "async_cpu_to_gpu": "ac2g",
}
"""Older spelling -> today's, from PyTorch 1.8 (2021) on; names that are not here stay."""
