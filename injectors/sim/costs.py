"""What device work costs at nominal speed: a fixed time plus the longer of arithmetic and memory.

    t = fixed + max(flops / (efficiency * peak), bytes / (efficiency * bandwidth))

All in integers. The shares below were measured on public traces of A100 and H100 jobs, as far as
simulator.md says so; those of flash attention are of FlashAttention-2 (Dao, 2023) on both.
"""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.job import ONE, Framework
from injectors.sim.machine import Machine

SECOND_NS = 10**9

# Shares of the bandwidth that a kind of kernel reaches, over what a large copy reaches.
COPY_Q16 = ONE
ADD_Q16 = ONE
FUSED_Q16 = 62259  # 0.95, a compiled or hand-written chain
FUSED_NORM_Q16 = 58982  # 0.90
SOFTMAX_Q16 = 49152  # 0.75
ACTIVATION_Q16 = 42598  # 0.65: 0.55 of the bandwidth
REDUCTION_Q16 = 39322  # 0.60
UNFUSED_NORM_Q16 = 30802  # 0.47: 0.40 of the bandwidth
GATHER_Q16 = 32768  # 0.50, rows in any order

# Speed of flash attention over that of large products, by architecture.
FLASH_Q16 = {"ampere": 49152, "sm90": 36045}
FLASH_BACKWARD_Q16 = 55706  # of the forward's

GEMM_FIXED_NS = 2_500
STREAM_FIXED_NS = 1_500
REDUCTION_FIXED_NS = 2_500


@dataclass(frozen=True)
class Cost:
    """Device time of one kernel at nominal speed, and the work that it stands for.

    Attributes:
        fixed_ns: Whatever the size.
        compute_ns: Of the arithmetic; the longer of this and `memory_ns` counts.
        memory_ns: Of the bytes moved.
        flops: Multiplications and additions.
        bytes: Read and written.
    """

    fixed_ns: int = 0
    compute_ns: int = 0
    memory_ns: int = 0
    flops: int = 0
    bytes: int = 0

    @property
    def total_ns(self) -> int:
        """Time of the kernel alone on the device."""
        return self.fixed_ns + max(self.compute_ns, self.memory_ns)


def rate_ns(amount: int, per_second: int, share_q16: int = ONE) -> int:
    """Return how long `amount` takes at `share_q16` of a rate, rounded up.

    >>> rate_ns(10**9, 2 * 10**9)
    500000000
    """
    if per_second < 1 or share_q16 < 1:
        raise ValueError(f"rate and share must be positive, got {per_second} and {share_q16}")
    return -(-amount * SECOND_NS * ONE // (per_second * share_q16))


class Costs:
    """Costs on one machine under one framework's settings."""

    def __init__(self, machine: Machine, framework: Framework) -> None:
        self.machine = machine
        self.framework = framework

    def of_layer(self, number: int) -> Costs:
        """Return the costs of the `number`-th layer, see Framework.of_layer."""
        framework = self.framework.of_layer(number)
        return self if framework is self.framework else Costs(self.machine, framework)

    @property
    def element_bytes(self) -> int:
        """Bytes of an activation, parameter or gradient: the whole model has one precision."""
        return 2 if self.machine.gpu and self.framework.precision == "bf16" else 4

    @property
    def flops_per_s(self) -> int:
        """What large products reach in the framework's precision."""
        gpu = self.machine.gpu
        if gpu is None:
            return self.machine.cpu_flops_per_s
        peak = {
            "bf16": gpu.bf16_flops_per_s,
            "tf32": gpu.tf32_flops_per_s,
            "fp32": gpu.fp32_flops_per_s,
        }[self.framework.precision]
        return peak * gpu.compute_efficiency_q16 >> 16

    @property
    def bytes_per_s(self) -> int:
        """What a large copy within the device's memory reaches."""
        gpu = self.machine.gpu
        if gpu is None:
            return self.machine.cpu_memory_bytes_per_s
        return gpu.memory_bytes_per_s * gpu.memory_efficiency_q16 >> 16

    def product(
        self, flops: int, bytes_moved: int, family: str = "gemm", share_q16: int = ONE
    ) -> Cost:
        """Return the cost of a product at `share_q16` of the usual speed of large ones."""
        share = share_q16 * self._family_q16(family) >> 16
        return Cost(
            fixed_ns=self._fixed(GEMM_FIXED_NS),
            compute_ns=rate_ns(flops, self.flops_per_s, share),
            memory_ns=rate_ns(bytes_moved, self.bytes_per_s, self._family_q16(family)),
            flops=flops,
            bytes=bytes_moved,
        )

    def stream(self, bytes_moved: int, share_q16: int = ONE, family: str = "elementwise") -> Cost:
        """Return the cost of a kernel that only moves bytes, at a share of the bandwidth."""
        share = share_q16 * self._family_q16(family) >> 16
        fixed = STREAM_FIXED_NS if share_q16 > REDUCTION_Q16 else REDUCTION_FIXED_NS
        memory_ns = rate_ns(bytes_moved, self.bytes_per_s, share)
        return Cost(fixed_ns=self._fixed(fixed), memory_ns=memory_ns, bytes=bytes_moved)

    def flash_q16(self, backward: bool) -> int:
        """Return the speed of flash attention over that of large products."""
        gpu = self.machine.gpu
        share = FLASH_Q16.get(gpu.kernels, FLASH_Q16["ampere"]) if gpu else ONE
        return share * FLASH_BACKWARD_Q16 >> 16 if backward else share

    def host_copy(self, bytes_moved: int, pinned: bool = True) -> Cost:
        """Return the cost of a copy between host and device; none where ranks have no device."""
        gpu = self.machine.gpu
        if gpu is None:
            return Cost()
        share = ONE if pinned else PAGEABLE_Q16
        memory_ns = rate_ns(bytes_moved, gpu.pcie_bytes_per_s, share)
        return Cost(fixed_ns=HOST_COPY_FIXED_NS, memory_ns=memory_ns, bytes=bytes_moved)

    def _family_q16(self, family: str) -> int:
        return self.framework.efficiency_q16.get(family, ONE)

    def _fixed(self, fixed_ns: int) -> int:
        return fixed_ns if self.machine.gpu else 0


PAGEABLE_Q16 = 19661  # 0.3: the driver copies through a pinned buffer of its own
HOST_COPY_FIXED_NS = 1_200
