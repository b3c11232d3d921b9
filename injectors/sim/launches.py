"""Device work before it has a place in a program: one kernel, or one exchange with other ranks.

`Launches` makes those that models are built of: products, element-wise chains, reductions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.sim import kernels
from injectors.sim.costs import ADD_Q16, FUSED_Q16, REDUCTION_Q16, Cost, Costs
from injectors.sim.job import ONE
from injectors.sim.nccl import Operation
from injectors.sim.program import Label, Noise, Stream

SMALL_ELEMENTS = 2**22
MORE_Q16 = ONE // 4  # host time of a further kernel of the same operator, over an operator's
COMPILED_Q16 = ONE // 3  # of a kernel that compiled code launches
BACKWARD_Q16 = ONE * 2 // 3  # of an operator that autograd calls without Python


@dataclass(frozen=True)
class Launch:
    """One kernel.

    Attributes:
        name: Last part of its op's path.
        host_q16: Host time over that of an eager operator.
        work: Row of work that scales it.
    """

    name: str
    label: Label
    cost: Cost
    noise: Noise = Noise.SMALL
    host_q16: int = ONE
    work: str = "tokens"


@dataclass(frozen=True)
class Exchange:
    """A collective on `stream`, which begins after what has been computed.

    Attributes:
        name: Last part of its op's path.
        operation, bytes: As NCCL counts them, see injectors.sim.nccl.
        group: Partition of ranks, also the row of its transfers.
        wait: Whether computation waits for it at once.
    """

    name: str
    operation: Operation
    bytes: int
    group: str
    stream: Stream
    wait: bool = True


@dataclass(frozen=True)
class ReadBack:
    """A number that the host needs before it can go on."""

    name: str


@dataclass(frozen=True)
class Launches:
    """Makes kernels at a machine's costs.

    Attributes:
        costs: Costs of the machine under the framework's settings.
        host_q16: Host time of each over that of an eager operator.
    """

    costs: Costs
    host_q16: int = ONE

    @property
    def dtype(self) -> str:
        """C++ name of the elements."""
        return kernels.CPP_TYPES[self.precision]

    @property
    def precision(self) -> kernels.Precision:
        """The framework's precision; CPUs compute in float32."""
        return self.costs.framework.precision if self.costs.machine.gpu else "fp32"

    def gemm(
        self,
        name: str,
        shape: tuple[int, int, int],
        layout: kernels.Layout,
        cpu_ops: tuple[str, ...],
        share_q16: int = ONE,
    ) -> Launch:
        """A product of (m, k) and (k, n): `shape` is (m, n, k)."""
        m, n, k = shape
        moved = (m * k + k * n + m * n) * self.costs.element_bytes
        cost = self.costs.product(2 * m * n * k, moved, share_q16=share_q16)
        small = m * n < SMALL_ELEMENTS // 4
        tile = 64 if small else 128
        label = Label(
            cpu_ops=cpu_ops,
            kernel=self._gemm_name(layout, small),
            dims=((m, k), (k, n)),
            dtype=self.dtype,
            grid=(-(-n // tile), -(-m // tile), 1),
            block=(128 if small else 384, 1, 1),
            registers=168,
            shared_bytes=49152 if small else 213_000,
        )
        return Launch(name, label, cost, Noise.GEMM, self.host_q16)

    def _gemm_name(self, layout: kernels.Layout, small: bool) -> str | None:
        gpu = self.costs.machine.gpu
        return kernels.gemm(gpu, self.precision, layout, small) if gpu else None

    def elementwise(
        self,
        name: str,
        elements: int,
        cpu_ops: tuple[str, ...],
        functor: str = "CUDAFunctor_add",
        tensors: int = 3,
        share_q16: int = ADD_Q16,
        host_q16: int = ONE,
        element_bytes: int | None = None,
    ) -> Launch:
        """An element-wise kernel over `tensors` operands of `elements` each."""
        size = element_bytes or self.costs.element_bytes
        label = self._stream_label(
            kernels.elementwise(f"{functor}<{self.dtype}>", tensors), elements, cpu_ops
        )
        cost = self.costs.stream(tensors * elements * size, share_q16)
        return Launch(name, label, cost, host_q16=self.host_q16 * host_q16 >> 16)

    def reduction(
        self, name: str, elements: int, cpu_ops: tuple[str, ...], functor: str = "sum_functor"
    ) -> Launch:
        """A kernel that reads `elements` and writes few."""
        kernel = kernels.reduction(functor, self.dtype)
        label = self._stream_label(kernel, elements // 16, cpu_ops)
        cost = self.costs.stream(elements * self.costs.element_bytes, REDUCTION_Q16)
        return Launch(name, label, cost, host_q16=self.host_q16)

    def named(
        self,
        name: str,
        kernel: str,
        bytes_moved: int,
        cpu_ops: tuple[str, ...],
        share_q16: int = FUSED_Q16,
        family: str = "elementwise",
    ) -> Launch:
        """A kernel of a given name that moves so many bytes."""
        label = self._stream_label(kernel, bytes_moved // 8, cpu_ops)
        cost = self.costs.stream(bytes_moved, share_q16, family)
        return Launch(name, label, cost, host_q16=self.host_q16)

    def triton(
        self,
        name: str,
        kind: Literal["poi", "red", "per"],
        ops: tuple[str, ...],
        number: int,
        elements: int,
        tensors: int,
        family: str = "elementwise",
    ) -> Launch:
        """A kernel that the compiler fused, over `tensors` operands of `elements` each."""
        kernel = kernels.triton(kind, ops, number)
        moved = tensors * elements * self.costs.element_bytes
        label = self._stream_label(kernel, elements, (kernel,), "cuLaunchKernel")
        cost = self.costs.stream(moved, FUSED_Q16, family)
        return Launch(name, label, cost, host_q16=COMPILED_Q16)

    def _stream_label(
        self,
        kernel: str,
        elements: int,
        cpu_ops: tuple[str, ...],
        runtime: str = "cudaLaunchKernel",
    ) -> Label:
        return Label(
            cpu_ops=cpu_ops,
            kernel=kernel if self.costs.machine.gpu else None,
            runtime=runtime,
            dims=((elements,),),
            dtype=self.dtype,
            grid=(max(1, -(-elements // 512)), 1, 1),
        )
