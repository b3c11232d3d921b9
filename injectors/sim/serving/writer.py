"""Writes kernels and sums over ranks of one way through the served model.

The rows of work of a way are its name and what a kernel grows with, "graph.gemm" or "eager.kv".
Where a step does not take the way all of them are 0, so that none of its ops happen.
"""

from __future__ import annotations

from dataclasses import replace

from injectors.sim import kernels
from injectors.sim.builder import (
    COLLECTIVE_CALL_NS,
    LARGE_BYTES,
    LAUNCH_NS,
    NCCL_OPS,
    SYNC_CALL_NS,
    Builder,
)
from injectors.sim.launches import COMPILED_Q16, Launch
from injectors.sim.program import Collective, Kind, Label, Noise, Op, Stream
from injectors.sim.serving.kernels import TOKENS
from injectors.sim.serving.model import Model

TENSOR = "tensor"
NOTHING = Label(kernel=None, runtime=None)
GRAPH_LAUNCH_NS, GRAPH_KERNEL_NS = 12_000, 130  # of the call, and for each kernel that it replays
GRAPH_HOST_NS = 2_000
FEW_TOKENS = 64  # by which NCCL chooses how graphs of few tokens are summed up


class Way:
    """Writes one way; `replay` begins a CUDA graph, without it kernels are launched one by one.

    Attributes:
        name: First part of its rows of work.
    """

    def __init__(self, name: str, builder: Builder, model: Model) -> None:
        self.name, self._builder, self._model = name, builder, model
        self._graph = False
        self._call_ns = 0

    def replay(self, kernels_in_all: int) -> None:
        """From here on kernels belong to a graph; the first of them carries its launch."""
        self._graph = True
        self._call_ns = GRAPH_LAUNCH_NS + GRAPH_KERNEL_NS * kernels_in_all

    def kernel(self, launch: Launch) -> None:
        """Append a kernel.

        Of a product that is replayed, reading the weights is the nominal cost; of one that is
        launched, the arithmetic. The row of work then says which of the two is longer.
        """
        cost = launch.cost
        if launch.work == "gemm":
            cost = replace(cost, **({"compute_ns": 0} if self._graph else {"memory_ns": 0}))
        self._append(replace(launch, cost=cost))

    def reading(self, launch: Launch) -> None:
        """Append a product of few tokens that is launched: reading its weights is what it costs."""
        self._append(replace(launch, cost=replace(launch.cost, compute_ns=0)))

    def _append(self, launch: Launch) -> None:
        builder, debug = self._builder, self._builder.job.framework.debug
        label, host_ns, launch_ns = launch.label, self._host_ns(launch), LAUNCH_NS
        if self._graph:
            runtime = "cudaGraphLaunch" if self._call_ns else None
            label = replace(label, cpu_ops=(), runtime=runtime, dims=())
            host_ns, launch_ns = (GRAPH_HOST_NS if self._call_ns else 0), self._call_ns
            self._call_ns = 0
        builder.add(
            Kind.KERNEL,
            launch.name,
            label=label,
            host_ns=host_ns,
            launch_ns=launch_ns,
            fixed_ns=launch.cost.fixed_ns,
            compute_ns=launch.cost.compute_ns,
            memory_ns=launch.cost.memory_ns,
            noise=launch.noise,
            work=self._row(launch.work),
        )
        if debug == "launch_blocking" and launch_ns:
            self._wait(f"{launch.name}.blocking", launch.work)

    def _wait(self, name: str, work: str) -> Op:
        """Let the thread wait for the device, in steps that have the work."""
        return self._builder.add(
            Kind.SYNC,
            name,
            label=NOTHING,
            host_ns=1_000,
            launch_ns=SYNC_CALL_NS,
            work=self._row(work),
        )

    def _host_ns(self, launch: Launch) -> int:
        return self._builder.job.host.op_ns * launch.host_q16 >> 16

    def _row(self, work: str) -> int:
        program = self._builder.program
        return program.row(program.work_rows, f"{self.name}.{work}")

    def reduce(self, name: str) -> None:
        """Append a sum over the ranks that share a layer, on the stream of the kernels."""
        builder, model = self._builder, self._model
        if model.tensor < 2:
            return
        tokens = FEW_TOKENS if self._graph else TOKENS
        size = tokens * model.hidden * builder.costs.element_bytes
        found = builder.choice("all_reduce", size, TENSOR)
        builder.add(
            Kind.COLLECTIVE,
            name,
            label=self._reduce_label(size, found.algorithm == "Tree"),
            stream=Stream.COMPUTE,
            other=Stream.COMPUTE,
            host_ns=0 if self._graph else builder.job.host.op_ns * COMPILED_Q16 >> 16,
            launch_ns=0 if self._graph else COLLECTIVE_CALL_NS,
            fixed_ns=found.fixed_ns,
            memory_ns=found.bytes_ns * TOKENS // tokens,
            noise=Noise.LARGE_COLLECTIVE if size > LARGE_BYTES else Noise.SMALL_COLLECTIVE,
            groups=TENSOR,
            transfer=builder.program.row(builder.program.transfer_rows, TENSOR),
            work=self._row("tokens"),
        )

    def _reduce_label(self, size: int, tree: bool) -> Label:
        launches, graph = self._builder.launches, self._graph
        return Label(
            cpu_ops=() if graph else ("vllm::all_reduce", "c10d::allreduce_"),
            kernel=kernels.nccl("all_reduce", launches.precision, tree),
            runtime=None if graph else "cudaLaunchKernelExC",
            dtype=launches.dtype,
            grid=(24, 1, 1),
            block=(544, 1, 1),
            registers=96,
            shared_bytes=82_240,
            collective=Collective(
                NCCL_OPS["all_reduce"], size, launches.dtype, TENSOR, self._model.tensor
            ),
        )
