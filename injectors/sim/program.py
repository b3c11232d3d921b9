"""Op programs: one step of a job as a list of operations that all ranks, or some, go through.

A program says what is done, in which order, on which host thread and CUDA stream, and what it
costs at nominal speed. It is interpreted over (step, op, rank) by injectors.sim.engine; what
differs from step to step (clocks, pauses, work shares, link shares) comes as `Conditions`.

Of two programs of the same job, with and without a fault, ops of the same `path` have the same
noise, wherever they stand: draws are keyed by the path and never by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
QUEUE_DEPTH = 1022  # launches that may be outstanding on a stream, see docs/simulator.md


class Kind(IntEnum):
    """What an op does; `thread` is its host thread, `stream` its CUDA stream.

    HOST: the thread is busy for `host_ns`.
    KERNEL: busy for `host_ns`, then a launch call of `launch_ns`, then the device works.
    INLINE: the thread itself works as a device would (CPU jobs).
    COLLECTIVE: as KERNEL on `stream`, after what is on stream `other`; all members of each group
        join, the transfer begins when the last one has come.
    SEND, RECV: as KERNEL, after what is on stream `other`; a RECV ends when the data of its SEND
        is there.
    WAIT_STREAM: `stream` waits for all that is on stream `other`.
    SYNC: the thread waits for all that is on `stream`.
    JOIN: the thread waits for what thread `other` has done so far.
    NEXT_BATCH: the thread takes the next batch from the loader, or waits for it.
    PAUSE: the thread stands still for the step's `pause_ns` of `pause`.
    MARK: notes where the thread and `stream` are; takes no time.
    """

    HOST = 0
    KERNEL = 1
    INLINE = 2
    COLLECTIVE = 3
    SEND = 4
    RECV = 5
    WAIT_STREAM = 6
    SYNC = 7
    JOIN = 8
    NEXT_BATCH = 9
    PAUSE = 10
    MARK = 11


class Thread(IntEnum):
    """Host threads of a rank."""

    MAIN = 0
    AUTOGRAD = 1


class Stream(IntEnum):
    """CUDA streams of a rank."""

    COMPUTE = 0
    DATA_PARALLEL = 1  # gradient and parameter collectives
    COPY = 2
    TENSOR_PARALLEL = 3
    EXPERT_PARALLEL = 4
    SEND = 5
    RECV = 6


STREAMS, THREADS = len(Stream), len(Thread)


class Noise(IntEnum):
    """Classes of spread; the coefficients of variation stand in injectors.sim.noise_classes."""

    NONE = 0
    GEMM = 1
    SMALL = 2  # small kernels
    LARGE_COLLECTIVE = 3
    SMALL_COLLECTIVE = 4
    COPY = 5
    INLINE = 6  # an op that a CPU computes


@dataclass(frozen=True)
class Collective:
    """What a communication op moves: NCCL's name for it, payload of one rank, and its group."""

    op: str
    bytes: int
    dtype: str
    group: str  # name of the process group ("default_pg", "tp", ...)
    world: int  # members of a group


@dataclass(frozen=True)
class Label:
    """How an op appears in a trace.

    Attributes:
        cpu_ops: Operators from the outermost to the one that launches, `()` for none.
        kernel: Name of the kernel, copy or fill; None where the device does nothing.
        category: Kineto's category of what the device does.
        runtime: Name of the runtime call; None inside of a CUDA graph, whose kernels have none.
        dims: Kineto's `Input Dims` of the innermost operator.
        dtype: Element type of its inputs, as Kineto writes it ("c10::BFloat16", "float").
        grid, block: Launch dimensions.
        registers, shared_bytes: Per thread, per block.
        bytes: Bytes that a copy moves.
        collective: Set on communication ops.
        sequence: Joins a forward operator with its backward one; None for others.
    """

    cpu_ops: tuple[str, ...] = ()
    kernel: str | None = None
    category: Literal["kernel", "gpu_memcpy", "gpu_memset"] = "kernel"
    runtime: str | None = "cudaLaunchKernel"
    dims: tuple[tuple[int, ...], ...] = ()
    dtype: str = "c10::BFloat16"
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    shared_bytes: int = 0
    bytes: int = 0
    collective: Collective | None = None
    sequence: int | None = None


@dataclass(frozen=True)
class Op:
    """One operation; times in ns at nominal speed.

    Attributes:
        path: Stable name within the step, unique, the key of the op's noise.
        ranks: Ranks that do it, None for all.
        groups: Name of the partition of ranks whose groups a collective joins.
        peers: Of a SEND or RECV, the partner of each of `ranks`.
        pair: Of a RECV, the path of its SEND.
        work: Row of `Conditions.work_q16` that scales the device's time (0: constant). In a step
            in which it is 0 on all ranks the op, of whatever kind, doesn't happen.
        transfer: Row of `Conditions.transfer_q16` that scales a collective's time.
        pause: Row of `Conditions.pause_ns`.
        batch: Of a NEXT_BATCH, its number within the step.
    """

    kind: Kind
    path: str
    label: Label = Label()
    thread: Thread = Thread.MAIN
    stream: Stream = Stream.COMPUTE
    other: int = 0
    host_ns: int = 0
    launch_ns: int = 0
    fixed_ns: int = 0
    compute_ns: int = 0
    memory_ns: int = 0
    noise: Noise = Noise.NONE
    work: int = 0
    transfer: int = 0
    pause: int = 0
    batch: int = 0
    ranks: tuple[int, ...] | None = None
    groups: str = ""
    peers: tuple[int, ...] = ()
    pair: str = ""


@dataclass(frozen=True)
class Span:
    """A named range on a host thread, from the start of one op to the end of another."""

    name: str
    first: str  # path of the op with which it begins
    last: str  # path of the op with which it ends
    thread: Thread = Thread.MAIN
    category: Literal["user_annotation", "cpu_op", "python_function"] = "user_annotation"


@dataclass
class Program:
    """A job's step, ready to be interpreted.

    Attributes:
        ranks: Number of ranks.
        ops: In an order that keeps each rank's own order and has every SEND before its RECV.
        groups: Partitions of ranks by name: `groups[name]` is a list of groups of ranks, which
            need not hold all ranks.
        spans: Named ranges for the trace.
        work_rows: Names of the rows of `Conditions.work_q16`; row 0 is the constant.
        transfer_rows: Names of the rows of `Conditions.transfer_q16`.
        pauses: Names of the rows of `Conditions.pause_ns`.
        batches: NEXT_BATCH ops a step and rank.
    """

    ranks: int
    ops: list[Op] = field(default_factory=list)
    groups: dict[str, list[list[int]]] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    work_rows: list[str] = field(default_factory=lambda: ["constant"])
    transfer_rows: list[str] = field(default_factory=list)
    pauses: list[str] = field(default_factory=list)
    batches: int = 0

    def row(self, rows: list[str], name: str) -> int:
        """Return the number of a named row of conditions, adding it if it is new."""
        if name not in rows:
            rows.append(name)
        return rows.index(name)

    def add(self, op: Op) -> Op:
        """Append an op."""
        self.ops.append(op)
        return op


@dataclass
class Conditions:
    """What differs between steps and ranks; arrays of int64, the last axis is the rank.

    Attributes:
        work_q16: (work rows, ranks), multiplies a device op's time.
        clock_q16: (ranks,), nominal over present SM clock, multiplies compute-bound time.
        memory_q16: (ranks,), multiplies memory-bound time.
        host_q16: (ranks,), multiplies host time (cores shared, slow CPU).
        preempt_q16: (ranks,), chance of 65536 that a host op loses its core.
        preempt_ns: (ranks,), longest time it is then away; half of it on average.
        transfer_q16: (transfer rows, ranks), multiplies a transfer; a group takes its largest.
        transfer_ns: (transfer rows, ranks), added to a transfer; a group takes its largest.
        pause_ns: (pauses, ranks).
        fetch_ns: (batches, ranks), what a loader worker needs for each batch of this step.
        overlap_q16: (ranks,), by how much device work is longer while a collective runs.
        contention_q16: (ranks,), by how much a transfer is longer while the device computes.
    """

    work_q16: Ints
    clock_q16: Ints
    memory_q16: Ints
    host_q16: Ints
    preempt_q16: Ints
    preempt_ns: Ints
    transfer_q16: Ints
    transfer_ns: Ints
    pause_ns: Ints
    fetch_ns: Ints
    overlap_q16: Ints
    contention_q16: Ints


@dataclass
class StepTimes:
    """When everything of one step happened; arrays (ops, ranks) of int64 ns, -1 for absent.

    Attributes:
        host: The thread begins the op.
        call: The runtime call begins (host ops: as `done`).
        done: The thread is free again.
        start: The device, or the transfer's own kernel, begins (MARK: thread and stream free).
        end: It ends.
        joined: Of a collective, when its last member came (RECV: when the data was sent).
        fetch_start: (batches, ranks), when the loader began each batch.
        ready: (batches, ranks), when it was ready.
    """

    host: Ints
    call: Ints
    done: Ints
    start: Ints
    end: Ints
    joined: Ints
    fetch_start: Ints
    ready: Ints


@dataclass(frozen=True)
class LoaderShape:
    """How the loader hands out batches: `workers` processes, `prefetch` batches each; 0: none."""

    workers: int
    prefetch: int = 2


def contiguous(ranks: Sequence[int]) -> slice | None:
    """Return ranks as a slice if they are evenly spaced, else None.

    >>> contiguous([1, 3, 5])
    slice(1, 6, 2)
    """
    step = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if step < 1 or list(ranks) != list(range(ranks[0], ranks[-1] + 1, step)):
        return None
    return slice(ranks[0], ranks[-1] + 1, step)
