"""A run of two ranks and two profiled steps with one op of every kind, its times set by hand."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from injectors.sim.job import Job
from injectors.sim.kineto import write_traces
from injectors.sim.machine import MACHINES
from injectors.sim.program import (
    Collective,
    Kind,
    Label,
    Op,
    Program,
    Span,
    StepTimes,
    Stream,
    Thread,
)
from injectors.sim.workloads import SIMULATED

RANKS, FIRST_STEP, STEP_NS = 2, 3, 400_000
SUM = Collective("allreduce", 4096, "c10::BFloat16", "default_pg", RANKS)
SILENT = Label(kernel=None, runtime=None)
FORWARD = Label(
    ("aten::linear", "aten::addmm"), "sm90_gemm", dims=((8, 16), (16, 4)), sequence=0,
    grid=(264, 1, 1), registers=168, shared_bytes=49152,
)  # fmt: skip
REDUCE = Label(
    ("c10d::allreduce_",), "ncclDevKernel_AllReduce", runtime="cudaLaunchKernelExC", collective=SUM
)
COPY = Label((), "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", "cudaMemcpyAsync", bytes=4)

# Op, then host, call, done, start, end of rank 0 in us; rank 1 does all 3 us later.
OPS: list[tuple[Op, tuple[int, int, int, int, int]]] = [
    (Op(Kind.NEXT_BATCH, "batch", SILENT), (0, 20, 20, -1, -1)),
    (Op(Kind.HOST, "prepare", Label(("aten::zeros",), runtime=None)), (20, 40, 40, -1, -1)),
    (Op(Kind.KERNEL, "forward", FORWARD), (40, 60, 66, 65, 95)),
    (Op(Kind.JOIN, "to", SILENT, Thread.AUTOGRAD, other=0), (66, 68, 68, -1, -1)),
    (Op(Kind.KERNEL, "backward", Label(("aten::mm",), "sm90_back", sequence=0),
        Thread.AUTOGRAD), (68, 80, 86, 96, 126)),
    (Op(Kind.COLLECTIVE, "reduce", REDUCE, Thread.AUTOGRAD, Stream.DATA_PARALLEL,
        groups="world"), (86, 116, 126, 131, 190)),
    (Op(Kind.JOIN, "from", SILENT, other=1), (126, 128, 128, -1, -1)),
    (Op(Kind.WAIT_STREAM, "wait", Label(kernel=None), other=Stream.DATA_PARALLEL),
     (128, 132, 132, -1, -1)),
    (Op(Kind.KERNEL, "copy", COPY), (132, 140, 146, 191, 193)),
    (Op(Kind.SYNC, "sync", Label(kernel=None)), (146, 148, 196, -1, -1)),
    (Op(Kind.MARK, "end", SILENT), (196, 196, 196, 196, 196)),
]  # fmt: skip
SPANS = [
    Span("DistributedDataParallel.forward", "prepare", "forward"),
    Span("autograd::engine::evaluate_function: AddmmBackward0", "backward", "backward",
         Thread.AUTOGRAD, "cpu_op"),
    Span("AddmmBackward0", "backward", "backward", Thread.AUTOGRAD, "cpu_op"),
    Span("aten::item", "copy", "sync", category="cpu_op"),
]  # fmt: skip


@dataclass
class TinyRun:
    """Times of `OPS`; a step begins `STEP_NS` after the one before."""

    job: Job
    program: Program
    sampled: tuple[int, ...] = (0, 1)
    kept: dict[int, StepTimes] = field(default_factory=dict)


def tiny(machine: str = "h100") -> TinyRun:
    """Make the run."""
    workload, place = SIMULATED["ddp_transformer"](), MACHINES[machine]
    job = Job(workload, place, workload.places(RANKS, place), seed=7, steps=5, profiled_steps=2)
    program = Program(RANKS, [op for op, _ in OPS], {"world": [[0, 1]]}, SPANS)
    run = TinyRun(job, program)
    for step in range(2):
        run.kept[FIRST_STEP + step] = times(step)
    return run


def times(step: int) -> StepTimes:
    """Times of a step, counted from the first profiled one."""
    base = np.array([row for _, row in OPS], np.int64)
    both = np.stack([base, base + 3], axis=2) * 1000 + step * STEP_NS
    both[np.stack([base, base], axis=2) < 0] = -1
    host, call, done, start, end = both.transpose(1, 0, 2)
    none = np.zeros((0, RANKS), np.int64)
    return StepTimes(host, call, done, start, end, np.full_like(host, -1), none, none)


def unpacked(packed: bytes) -> dict[str, Any]:
    """Read a trace."""
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


@pytest.fixture
def tiny_run() -> TinyRun:
    return tiny()


@pytest.fixture
def tiny_trace(tiny_run: TinyRun) -> dict[str, Any]:
    """Rank 0's trace."""
    return unpacked(write_traces(tiny_run, (0,))[0])
