"""Writes op programs: paths, host times, labels and the costs of communication in one place.

Conventions that conditions, tables and traces rely on:

- The op of a piece of work has the same path in every variant of the job that does it.
- Work rows (`Op.work`): "constant"; "tokens", the device work of a micro-batch; "attention", which
  grows with the squared lengths; "experts"; "rows", of embedding shards; "pcie", copies between
  host and device; "checkpoint", 0 in steps that save nothing.
- Transfer rows (`Op.transfer`): the names of the partitions of ranks, see injectors.sim.partitions.
- Pauses (`Op.pause`): see PAUSES; each stands once in every program of a training job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from injectors.sim.costs import Cost, Costs
from injectors.sim.job import ONE, Job
from injectors.sim.labels import LARGE_BYTES, NCCL_OPS, Way, copy_label, exchange_label, silent
from injectors.sim.launches import Exchange, Launch, Launches
from injectors.sim.nccl import Choice, Operation
from injectors.sim.partitions import Partitions
from injectors.sim.program import Kind, Label, Noise, Op, Program, Span, Stream, Thread

PAUSES = (
    "respawn",  # the loader's workers start again
    "extra",  # further Python work
    "recompile",
    "autotune",
    "gc",
    "suspend",
    "poll",  # an agent holds the driver's lock
    "retry",  # the allocator frees and allocates
    "checkpoint",
    "metric",
)
LAUNCH_NS, COPY_CALL_NS, COLLECTIVE_CALL_NS, EVENT_NS = 5_000, 6_000, 9_000, 2_500
SYNC_HOST_NS, SYNC_CALL_NS, JOIN_NS = 1_000, 4_000, 2_000
COLLECTIVE_HOST_NS = 30_000  # Python and c10d around one collective
SCALAR_BYTES = 4
TO_DEVICE = ("aten::to", "aten::_to_copy", "aten::copy_")
SpanKind = Literal["user_annotation", "cpu_op", "python_function"]
__all__ = ["LARGE_BYTES", "NCCL_OPS", "PAUSES", "Builder", "SpanKind"]


class Builder:
    """Appends ops to a job's program.

    Attributes:
        job: What is compiled.
        program: The result.
        partitions: Groups of its ranks.
        costs: What device work costs.
        launches: Makes eager kernels.
        ranks: Ranks that do what is appended, None for all.
        thread: Host thread that does it.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.program = Program(job.places.ranks)
        self.partitions = Partitions(job, self.program.groups)
        self.costs = Costs(job.machine, job.framework)
        self.launches = Launches(self.costs)
        self.ranks: tuple[int, ...] | None = None
        self.thread = Thread.MAIN
        self._on_gpu = job.machine.gpu is not None
        self._parts: list[str] = []
        self._paths: set[str] = set()
        self._sequence = 0

    # Where ops stand.

    @contextmanager
    def under(
        self, part: str, span: str | None = None, category: SpanKind = "user_annotation"
    ) -> Iterator[None]:
        """Append within a part of the step; `span` names the range of it in the trace."""
        self._parts.append(part)
        first = len(self.program.ops)
        yield
        self._parts.pop()
        if span:
            self.span(span, first, category)

    @contextmanager
    def at(self, *parts: str) -> Iterator[None]:
        """Append under parts of the step that don't depend on where this is called."""
        before, self._parts = self._parts, list(parts)
        yield
        self._parts = before

    @contextmanager
    def on(self, thread: Thread) -> Iterator[None]:
        """Append on another host thread, which starts when this one has come here."""
        before = self.thread
        self.join(thread, before, f"to_{thread.name.lower()}")
        self.thread = thread
        yield
        self.thread = before
        self.join(before, thread, f"from_{thread.name.lower()}")

    def span(self, name: str, first: int, category: SpanKind = "user_annotation") -> None:
        """Name the range from the `first`-th op to the last one, as far as this thread did them."""
        own = [op.path for op in self.program.ops[first:] if op.thread == self.thread]
        if own:
            self.program.spans.append(Span(name, own[0], own[-1], self.thread, category))

    def next_sequence(self) -> int:
        """Return a number that joins a forward operator with its backward half."""
        self._sequence += 1
        return self._sequence

    def add(self, kind: Kind, name: str, **fields: Any) -> Op:
        """Append an op of any kind under the present part; `name` is the last of its path."""
        path = "/".join((*self._parts, name))
        if path in self._paths:
            raise ValueError(f"path of an op must be new, got {path!r} again")
        self._paths.add(path)
        fields.setdefault("thread", self.thread)
        return self.program.add(Op(kind, path, ranks=self.ranks, **fields))

    # The host.

    def host(self, name: str, host_ns: int, cpu_ops: tuple[str, ...] = ()) -> Op:
        """Append work of the host thread alone."""
        return self.add(Kind.HOST, name, label=Label(cpu_ops, runtime=None), host_ns=host_ns)

    def join(self, thread: Thread, other: Thread, name: str) -> Op:
        """Append waiting of a thread for another one."""
        return self.add(
            Kind.JOIN, name, label=silent(), thread=thread, other=other, host_ns=JOIN_NS
        )

    def mark(self, path: str) -> None:
        """Note how far thread and device have come, under a path that stands for itself."""
        with self.at():
            self.add(Kind.MARK, path, label=silent())

    def pause(self, name: str) -> None:
        """Append a place where the thread may stand still."""
        if name not in PAUSES:
            raise ValueError(f"pause must be one of {', '.join(PAUSES)}, got {name!r}")
        row = self.program.row(self.program.pauses, name)
        with self.at("pause"):
            self.add(Kind.PAUSE, name, label=silent(), pause=row)

    def next_batch(self, host_ns: int) -> None:
        """Append taking the next batch from the loader."""
        iterator = "MultiProcessing" if self.job.loader.workers else "SingleProcess"
        number = self.program.batches
        self.add(Kind.NEXT_BATCH, "next_batch", label=silent(), batch=number, host_ns=host_ns)
        self.program.batches += 1
        name = f"enumerate(DataLoader)#_{iterator}DataLoaderIter.__next__"
        self.span(name, len(self.program.ops) - 1)

    # The device.

    def launch(
        self,
        launch: Launch,
        sequence: int | None = None,
        host_q16: int = ONE,
        stream: Stream = Stream.COMPUTE,
    ) -> Op:
        """Append a kernel, or the same work done by the thread itself where there is no GPU."""
        label = launch.label
        if sequence is not None:
            label = replace(label, sequence=sequence)
        op = self.add(
            Kind.KERNEL if self._on_gpu else Kind.INLINE,
            launch.name,
            label=label,
            stream=stream,
            host_ns=self.job.host.op_ns * (launch.host_q16 * host_q16 >> 16) >> 16,
            launch_ns=LAUNCH_NS if self._on_gpu else 0,
            noise=launch.noise if self._on_gpu else Noise.INLINE,
            **self._device_time(launch.cost, launch.work),
        )
        self._block(launch.name, stream)
        return op

    def copy(
        self,
        name: str,
        bytes_moved: int,
        way: Way,
        pinned: bool = True,
        stream: Stream = Stream.COMPUTE,
        cpu_ops: tuple[str, ...] = TO_DEVICE,
        work: str = "pcie",
    ) -> None:
        """Append a copy between host and device; from pageable memory the caller waits for it.

        Nothing where there is no GPU.
        """
        if not self._on_gpu:
            return
        within = way == "DtoD"
        cost = (
            self.costs.stream(2 * bytes_moved)
            if within
            else self.costs.host_copy(bytes_moved, pinned)
        )
        self.add(
            Kind.KERNEL,
            name,
            label=copy_label(bytes_moved, way, pinned, cpu_ops),
            stream=stream,
            host_ns=self.job.host.op_ns // 2,
            launch_ns=COPY_CALL_NS,
            noise=Noise.COPY,
            **self._device_time(cost, "constant" if within else work),
        )
        if not pinned:
            self.sync(f"{name}.wait", stream)

    def read_back(self, name: str) -> None:
        """Append `.item()`: a copy of one number to the host, and waiting for it."""
        with self.under(name):
            first = len(self.program.ops)
            self.copy("copy", SCALAR_BYTES, "DtoH", cpu_ops=())
            self.sync("wait")
            self.span("aten::item", first, "cpu_op")
            self.span("aten::_local_scalar_dense", first, "cpu_op")

    def sync(
        self,
        name: str,
        stream: Stream = Stream.COMPUTE,
        runtime: str | None = "cudaStreamSynchronize",
    ) -> Op:
        """Append waiting of the thread for a stream."""
        return self.add(
            Kind.SYNC,
            name,
            label=silent(runtime if self._on_gpu else None),
            stream=stream,
            host_ns=SYNC_HOST_NS,
            launch_ns=SYNC_CALL_NS if self._on_gpu else 0,
        )

    def wait(self, name: str, stream: Stream, other: Stream) -> Op:
        """Append waiting of a stream for another one; on CPUs it is the thread that waits."""
        if not self._on_gpu:
            return self.sync(name, other)
        label = silent("cudaStreamWaitEvent")
        return self.add(
            Kind.WAIT_STREAM, name, label=label, stream=stream, other=other, host_ns=EVENT_NS
        )

    def _device_time(self, cost: Cost, work: str) -> dict[str, int]:
        return {
            "fixed_ns": cost.fixed_ns,
            "compute_ns": cost.compute_ns,
            "memory_ns": cost.memory_ns,
            "work": self.program.row(self.program.work_rows, work),
        }

    def _block(self, name: str, stream: Stream) -> None:
        """Let the launch call return only when the kernel is done, as CUDA_LAUNCH_BLOCKING does."""
        if self._on_gpu and self.job.framework.debug == "launch_blocking":
            self.sync(f"{name}.blocking", stream, runtime=None)

    # Other ranks.

    def members(self, group: str) -> list[list[int]]:
        """Return the groups of a partition of ranks by name."""
        return self.partitions.members(group)

    def size(self, group: str) -> int:
        """Return how many ranks each group of a partition has."""
        return self.partitions.size(group)

    def choice(self, operation: Operation, size: int, group: str) -> Choice:
        """Return the cost of communication within the groups of a partition."""
        return self.partitions.choice(operation, size, group)

    def exchange(self, exchange: Exchange) -> Op | None:
        """Append a collective, and waiting for it if the exchange asks; none within one rank."""
        if self.size(exchange.group) < 2:
            return None
        op = self._communicate(Kind.COLLECTIVE, exchange, Stream.COMPUTE, groups=exchange.group)
        if exchange.wait:
            self.wait(f"{exchange.name}.wait", Stream.COMPUTE, exchange.stream)
        self._block(exchange.name, exchange.stream)
        return op

    def send(self, name: str, size: int, peers: tuple[int, ...]) -> Op:
        """Append sending of what has been computed, to a peer of each of the builder's ranks."""
        message = Exchange(name, "send", size, "pipeline", Stream.SEND)
        return self._communicate(Kind.SEND, message, Stream.COMPUTE, peers=peers)

    def recv(self, name: str, size: int, peers: tuple[int, ...], pair: str) -> None:
        """Append receiving what was sent by the op `pair`; computation waits for it."""
        message = Exchange(name, "recv", size, "pipeline", Stream.RECV)
        self._communicate(Kind.RECV, message, Stream.RECV, peers=peers, pair=pair)
        self.wait(f"{name}.wait", Stream.COMPUTE, Stream.RECV)

    def _communicate(self, kind: Kind, exchange: Exchange, other: Stream, **fields: Any) -> Op:
        world = 2 if kind != Kind.COLLECTIVE else self.size(exchange.group)
        found = self.choice(exchange.operation, exchange.bytes, exchange.group)
        everybody = world == self.program.ranks
        large = exchange.bytes >= LARGE_BYTES
        return self.add(
            kind,
            exchange.name,
            label=exchange_label(exchange, found, self.launches, world, everybody),
            stream=exchange.stream,
            other=other,
            host_ns=COLLECTIVE_HOST_NS,
            launch_ns=COLLECTIVE_CALL_NS if self._on_gpu else 0,
            fixed_ns=found.fixed_ns,
            memory_ns=found.bytes_ns,
            noise=Noise.LARGE_COLLECTIVE if large else Noise.SMALL_COLLECTIVE,
            transfer=self.program.row(self.program.transfer_rows, exchange.group),
            **fields,
        )
