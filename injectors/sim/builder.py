"""Writes op programs: paths, host times, labels and the costs of communication in one place.

Conventions that conditions, tables and traces rely on:

- The op of a piece of work has the same path in every variant of the job that does it.
- Work rows (`Op.work`): "constant"; "tokens", the device work of a micro-batch; "attention", which
  grows with the squared lengths; "experts"; "rows", of embedding shards; "pcie", copies between
  host and device; "checkpoint", 0 in steps that save nothing.
- Transfer rows (`Op.transfer`): the names of the partitions of ranks, "data", "tensor", "expert",
  "pipeline", "world".
- Pauses (`Op.pause`): see PAUSES; each stands once in every program of a training job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from injectors.sim import gloo, kernels
from injectors.sim.costs import Costs
from injectors.sim.job import Job, Places
from injectors.sim.launches import Exchange, Launch, Launches
from injectors.sim.nccl import Choice, Nccl, Operation, Shape
from injectors.sim.program import Collective, Kind, Label, Noise, Op, Program, Span, Stream, Thread

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
SYNC_CALL_NS = 4_000
COLLECTIVE_HOST_NS = 30_000  # Python and c10d around one collective
LARGE_BYTES = 2**20
SpanKind = Literal["user_annotation", "cpu_op", "python_function"]
C10D = {
    "all_reduce": "c10d::allreduce_",
    "all_gather": "c10d::_allgather_base_",
    "reduce_scatter": "c10d::_reduce_scatter_base_",
    "all_to_all": "c10d::alltoall_base_",
    "broadcast": "c10d::broadcast_",
    "send": "c10d::send",
    "recv": "c10d::recv_",
}
NCCL_OPS = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_allv",
    "broadcast": "broadcast",
    "send": "send",
    "recv": "recv",
}


class Builder:
    """Appends ops to a job's program.

    Attributes:
        job: What is compiled.
        program: The result.
        launches: Makes eager kernels for it.
        ranks: Ranks that do what is appended, None for all.
        thread: Host thread that does it.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.program = Program(job.places.ranks)
        self.costs = Costs(job.machine, job.framework)
        self.launches = Launches(self.costs)
        self.ranks: tuple[int, ...] | None = None
        self.thread = Thread.MAIN
        self._nccl = Nccl(job.machine, job.network) if job.machine.gpu else None
        self._parts: list[str] = []
        self._paths: set[str] = set()
        self._chosen: dict[tuple[str, int, str], Choice] = {}
        self._sequence = 0

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

    def span(self, name: str, first: int, category: SpanKind = "user_annotation") -> None:
        """Name the range from the `first`-th op to the last one, as far as this thread did them."""
        own = [op.path for op in self.program.ops[first:] if op.thread == self.thread]
        if own:
            self.program.spans.append(Span(name, own[0], own[-1], self.thread, category))

    @contextmanager
    def on(self, thread: Thread) -> Iterator[None]:
        """Append on another host thread, which starts when this one has come here."""
        before = self.thread
        self.join(thread, before, f"to_{thread.name.lower()}")
        self.thread = thread
        yield
        self.thread = before
        self.join(before, thread, f"from_{thread.name.lower()}")

    def add(self, kind: Kind, name: str, **fields: Any) -> Op:
        """Append an op of any kind under the present part; `name` is the last of its path."""
        path = "/".join((*self._parts, name))
        if path in self._paths:
            raise ValueError(f"path of an op must be new, got {path!r} again")
        self._paths.add(path)
        fields.setdefault("thread", self.thread)
        return self.program.add(Op(kind, path, ranks=self.ranks, **fields))

    def next_sequence(self) -> int:
        """Return a number that joins a forward operator with its backward half."""
        self._sequence += 1
        return self._sequence

    def host(self, name: str, host_ns: int, cpu_ops: tuple[str, ...] = ()) -> Op:
        """Append work of the host thread alone."""
        return self.add(Kind.HOST, name, label=Label(cpu_ops, runtime=None), host_ns=host_ns)

    def launch(
        self,
        launch: Launch,
        sequence: int | None = None,
        host_q16: int = 2**16,
        stream: Stream = Stream.COMPUTE,
    ) -> Op:
        """Append a kernel, or the same work done by the thread itself where there is no GPU."""
        label = launch.label
        if sequence is not None:
            label = replace(label, sequence=sequence)
        on_gpu = self._nccl is not None
        host_q16 = launch.host_q16 * host_q16 >> 16
        op = self.add(
            Kind.KERNEL if on_gpu else Kind.INLINE,
            launch.name,
            label=label,
            stream=stream,
            host_ns=self.job.host.op_ns * host_q16 >> 16,
            launch_ns=LAUNCH_NS if on_gpu else 0,
            fixed_ns=launch.cost.fixed_ns,
            compute_ns=launch.cost.compute_ns,
            memory_ns=launch.cost.memory_ns,
            noise=launch.noise if on_gpu else Noise.INLINE,
            work=self.program.row(self.program.work_rows, launch.work),
        )
        if on_gpu and self.job.framework.debug == "launch_blocking":
            self.sync(f"{launch.name}.blocking", stream, runtime=None)
        return op

    def copy(
        self,
        name: str,
        bytes_moved: int,
        way: Literal["HtoD", "DtoH", "DtoD"],
        pinned: bool = True,
        stream: Stream = Stream.COMPUTE,
        cpu_ops: tuple[str, ...] = ("aten::to", "aten::_to_copy", "aten::copy_"),
        work: str = "pcie",
    ) -> None:
        """Append a copy between host and device; from pageable memory the caller waits for it."""
        if self._nccl is None:
            return
        kind = "Pinned" if pinned else "Pageable"
        ends = {
            "HtoD": f"{kind} -> Device",
            "DtoH": f"Device -> {kind}",
            "DtoD": "Device -> Device",
        }
        cost = self.costs.host_copy(bytes_moved, pinned)
        if way == "DtoD":
            cost = self.costs.stream(2 * bytes_moved)
        label = Label(
            cpu_ops,
            f"Memcpy {way} ({ends[way]})",
            "gpu_memcpy",
            "cudaMemcpyAsync",
            bytes=bytes_moved,
        )
        self.add(
            Kind.KERNEL,
            name,
            label=label,
            stream=stream,
            host_ns=self.job.host.op_ns // 2,
            launch_ns=COPY_CALL_NS,
            fixed_ns=cost.fixed_ns,
            memory_ns=cost.memory_ns,
            noise=Noise.COPY,
            work=self.program.row(self.program.work_rows, work if way != "DtoD" else "constant"),
        )
        if not pinned:
            self.sync(f"{name}.wait", stream)

    def read_back(self, name: str) -> None:
        """Append `.item()`: a copy of one number to the host, and waiting for it."""
        with self.under(name):
            first = len(self.program.ops)
            self.copy("copy", 4, "DtoH", pinned=True, cpu_ops=())
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
        label = Label(kernel=None, runtime=runtime)
        return self.add(
            Kind.SYNC, name, label=label, stream=stream, host_ns=1_000, launch_ns=SYNC_CALL_NS
        )

    def join(self, thread: Thread, other: Thread, name: str) -> Op:
        """Append waiting of a thread for another one."""
        label = Label(kernel=None, runtime=None)
        return self.add(Kind.JOIN, name, label=label, thread=thread, other=other, host_ns=2_000)

    def wait(self, name: str, stream: Stream, other: Stream) -> Op:
        """Append waiting of a stream for another one."""
        label = Label(kernel=None, runtime="cudaStreamWaitEvent")
        return self.add(
            Kind.WAIT_STREAM, name, label=label, stream=stream, other=other, host_ns=EVENT_NS
        )

    def mark(self, path: str) -> None:
        """Note how far thread and device have come, under a path that stands for itself."""
        with self.at():
            self.add(Kind.MARK, path, label=Label(kernel=None, runtime=None))

    def pause(self, name: str) -> None:
        """Append a place where the thread may stand still."""
        if name not in PAUSES:
            raise ValueError(f"pause must be one of {', '.join(PAUSES)}, got {name!r}")
        row = self.program.row(self.program.pauses, name)
        with self.at("pause"):
            self.add(Kind.PAUSE, name, label=Label(kernel=None, runtime=None), pause=row)

    def next_batch(self, host_ns: int) -> None:
        """Append taking the next batch from the loader."""
        label = Label(kernel=None, runtime=None)
        number = self.program.batches
        iterator = "MultiProcessing" if self.job.loader.workers else "SingleProcess"
        self.add(Kind.NEXT_BATCH, "next_batch", label=label, batch=number, host_ns=host_ns)
        self.program.batches += 1
        name = f"enumerate(DataLoader)#_{iterator}DataLoaderIter.__next__"
        self.span(name, len(self.program.ops) - 1)

    def members(self, group: str) -> list[list[int]]:
        """Return the groups of a partition of ranks by name."""
        places = self.job.places
        if group not in self.program.groups:
            self.program.groups[group] = {
                "data": places.data_groups,
                "tensor": places.tensor_groups,
                "expert": places.expert_groups,
                "expert_data": lambda: expert_data_groups(places),
                "pipeline": lambda: pipelines(places),
                "world": lambda: [list(range(places.ranks))],
            }[group]()
        return self.program.groups[group]

    def size(self, group: str) -> int:
        """Return how many ranks each group of a partition has."""
        return max(len(members) for members in self.members(group))

    def exchange(self, exchange: Exchange) -> Op | None:
        """Append a collective, and waiting for it if the exchange asks; none within one rank."""
        if self.size(exchange.group) < 2:
            return None
        found = self.choice(exchange.operation, exchange.bytes, exchange.group)
        op = self.add(
            Kind.COLLECTIVE,
            exchange.name,
            label=self._collective_label(exchange, found),
            stream=exchange.stream,
            other=Stream.COMPUTE,
            host_ns=COLLECTIVE_HOST_NS,
            launch_ns=COLLECTIVE_CALL_NS if self._nccl else 0,
            fixed_ns=found.fixed_ns,
            memory_ns=found.bytes_ns,
            noise=(
                Noise.LARGE_COLLECTIVE if exchange.bytes >= LARGE_BYTES else Noise.SMALL_COLLECTIVE
            ),
            groups=exchange.group,
            transfer=self.program.row(self.program.transfer_rows, exchange.group),
        )
        if exchange.wait:
            self.wait(f"{exchange.name}.wait", Stream.COMPUTE, exchange.stream)
        return op

    def send(self, name: str, size: int, peers: tuple[int, ...]) -> Op:
        """Append sending of what has been computed, to a peer of each of the builder's ranks."""
        return self._message(Kind.SEND, "send", name, size, peers, Stream.SEND, Stream.COMPUTE)

    def recv(self, name: str, size: int, peers: tuple[int, ...], pair: str) -> None:
        """Append receiving what was sent by the op `pair`; computation waits for it."""
        stream = Stream.RECV
        self._message(Kind.RECV, "recv", name, size, peers, stream, stream, pair)
        self.wait(f"{name}.wait", Stream.COMPUTE, stream)

    def _message(
        self,
        kind: Kind,
        operation: Literal["send", "recv"],
        name: str,
        size: int,
        peers: tuple[int, ...],
        stream: Stream,
        other: Stream,
        pair: str = "",
    ) -> Op:
        found = self.choice(operation, size, "pipeline")
        exchange = Exchange(name, operation, size, "pipeline", stream)
        return self.add(
            kind,
            name,
            label=self._collective_label(exchange, found),
            stream=stream,
            other=other,
            host_ns=COLLECTIVE_HOST_NS,
            launch_ns=COLLECTIVE_CALL_NS if self._nccl else 0,
            fixed_ns=found.fixed_ns,
            memory_ns=found.bytes_ns,
            noise=Noise.LARGE_COLLECTIVE if size >= LARGE_BYTES else Noise.SMALL_COLLECTIVE,
            transfer=self.program.row(self.program.transfer_rows, "pipeline"),
            peers=peers,
            pair=pair,
        )

    def choice(self, operation: Operation, size: int, group: str) -> Choice:
        """Return the cost of a collective over the groups of a partition."""
        key = (operation, size, group)
        if key not in self._chosen:
            shape = Shape.of(self.members(group), self.job.places)
            if operation in ("send", "recv"):
                shape = Shape(2, min(shape.hosts, 2), 1 if shape.hosts > 1 else 2)
            self._chosen[key] = (
                self._nccl.choose(operation, size, shape)
                if self._nccl
                else gloo.choose(operation, size, shape, self.job.machine)
            )
        return self._chosen[key]

    def _collective_label(self, exchange: Exchange, found: Choice) -> Label:
        operation, on_gpu = exchange.operation, self._nccl is not None
        precision = self.launches.precision
        elements = exchange.bytes // self.costs.element_bytes
        world = self.size(exchange.group)
        return Label(
            cpu_ops=(C10D[operation], "record_param_comms") if on_gpu else (C10D[operation],),
            kernel=kernels.nccl(operation, precision, found.algorithm == "Tree")
            if on_gpu
            else None,
            runtime="cudaLaunchKernelExC" if on_gpu else None,
            dims=((elements,),),
            dtype=self.launches.dtype,
            grid=(24 if exchange.bytes >= LARGE_BYTES else 2, 1, 1),
            block=(544 if found.protocol != "LL" else 288, 1, 1),
            registers=96,
            shared_bytes=82_240,
            collective=Collective(
                op=NCCL_OPS[operation],
                bytes=exchange.bytes,
                dtype=self.launches.dtype,
                group="default_pg" if world == self.program.ranks else exchange.group,
                world=world,
            ),
        )


def expert_data_groups(places: Places) -> list[list[int]]:
    """Return the groups of ranks that hold the same experts."""
    return [
        group[lane :: places.expert]
        for group in places.data_groups()
        for lane in range(places.expert)
    ]


def pipelines(places: Places) -> list[list[int]]:
    """Return the groups of ranks that hand micro-batches on to each other."""
    block = places.tensor * places.data
    return [list(range(first, places.ranks, block)) for first in range(block)]
