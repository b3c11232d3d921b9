"""A job of two ranks that is known by heart: its loader takes 40 of the 100 ms of every step.

Rank 1's GPU takes 50 ms for what rank 0's does in 30; the collective at the end of a step lasts
10 ms and overlaps with nothing. Utilisation is 30 %, memory 60 % full.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from cases.bundle import write_case
from cases.schema import CaseInfo
from tests.harness.third_party.conftest import make_span, packed

RANKS, STEPS, PROFILED = 2, 24, 3
STEP_MS, WAIT_MS = 100, 40
KERNEL_MS = (30, 50)
COLLECTIVE_MS = 10
MS_NS = 1_000_000
GIB = 2**30
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def write_starved(folder: Path) -> Path:
    """Write the case; returns its folder."""
    tables = {"steps": _steps(), "gpu": _gpu(), "host": _host(), "loader": _loader()}
    ranks = [{"rank": rank, "host": "host0", "gpu": f"host0/gpu{rank}"} for rank in range(RANKS)]
    info = CaseInfo.model_validate(
        {
            **{"id": folder.name, "title": "A job", "kind": "training", "shape": "snapshot"},
            **{"question": "audit", "objective": "Find what is slow."},
            **{"workload": {"name": "ddp_transformer"}, "topology": {"ranks": ranks}},
            "environment": {"config": {"workers": 4}, "hardware": {"gpu": "NVIDIA A100"}},
            "signals": {"present": [*tables, "trace_events"]},
            "provenance": {"backend": "imported"},
        }
    )
    traces = {rank: packed(trace(rank)) for rank in range(RANKS)}
    write_case(folder, info, tables, traces, None)
    return folder


def trace(rank: int) -> list[dict[str, Any]]:
    """Events of the profiled steps of one rank."""
    return [event for step in range(PROFILED) for event in _traced_step(rank, step)]


def _traced_step(rank: int, step: int) -> list[dict[str, Any]]:
    start = step * STEP_MS * 1000.0
    wait, kernel = WAIT_MS * 1000.0, KERNEL_MS[rank] * 1000.0
    launch, ids = start + wait, (10 * step + 1, 10 * step + 2)
    on_device = {"device": rank, "context": 1}
    return [
        make_span(f"ProfilerStep#{step}", "user_annotation", start, STEP_MS * 1000.0),
        make_span(LOADER, "user_annotation", start, wait),
        make_span("cudaLaunchKernel", "cuda_runtime", launch, 5, correlation=ids[0]),
        make_span("cudaLaunchKernel", "cuda_runtime", launch + 10, 5, correlation=ids[1]),
        make_span("gemm", "kernel", launch + 20, kernel, stream=7, correlation=ids[0], **on_device),
        make_span(
            NCCL,
            "kernel",
            launch + 20 + kernel,
            COLLECTIVE_MS * 1000.0,
            **{"stream": 20, "correlation": ids[1], **on_device},
        ),
    ]


def _steps() -> pd.DataFrame:
    rows = [
        {
            **{"rank": rank, "step": step, "span": 1, "start_ns": step * STEP_MS * MS_NS},
            **{"duration_ns": STEP_MS * MS_NS, "data_wait_ns": WAIT_MS * MS_NS},
            **{"forward_ns": 20 * MS_NS, "backward_ns": 38 * MS_NS, "optimizer_ns": 2 * MS_NS},
            **{"checkpoint_ns": 0, "tokens": 64},
        }
        for rank in range(RANKS)
        for step in range(STEPS)
    ]
    return pd.DataFrame(rows)


def _gpu() -> pd.DataFrame:
    rows = [
        {
            **{"rank": rank, "time_ns": (step + 1) * STEP_MS * MS_NS},
            **{"utilization_percent": 30.0, "memory_utilization_percent": 20.0},
            **{"memory_used_bytes": 48 * GIB, "memory_total_bytes": 80 * GIB},
            **{"power_w": 200.0, "power_limit_w": 400.0, "temperature_c": 50},
            **{"sm_clock_mhz": 1410, "memory_clock_mhz": 1593, "event_reasons": 0},
        }
        for rank in range(RANKS)
        for step in range(STEPS)
    ]
    return pd.DataFrame(rows)


def _host() -> pd.DataFrame:
    rows = [
        {
            **{"host": "host0", "time_ns": (step + 1) * STEP_MS * MS_NS, "cores": 16},
            **{"cpu_busy_ns": 400 * MS_NS, "disk_read_bytes": 1_000_000, "psi_io_some_ns": 0},
        }
        for step in range(STEPS)
    ]
    return pd.DataFrame(rows)


def _loader() -> pd.DataFrame:
    rows = [
        {
            **{"rank": rank, "worker": step % 4, "batch": step, "start_ns": step * STEP_MS * MS_NS},
            **{"fetch_ns": 4 * STEP_MS * MS_NS, "read_ns": MS_NS, "cpu_ns": 4 * STEP_MS * MS_NS},
            **{"read_bytes": 1_000_000, "queue_depth": 0},
        }
        for rank in range(RANKS)
        for step in range(STEPS)
    ]
    return pd.DataFrame(rows)
