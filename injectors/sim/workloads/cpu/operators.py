"""What PyTorch's operators cost on a CPU core: products, element-wise work, streams of memory.

Nominal times of element-wise work are those of one core of the machine that the suite
recorded_cpu was recorded on, from the traces of its healthy runs and a few measurements of
operators alone; a healthy recording scales them (see injectors.sim.twin.Speeds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.sim.costs import Cost, rate_ns
from injectors.sim.job import ONE, Job
from injectors.sim.launches import BACKWARD_Q16, Launch
from injectors.sim.program import Label, Noise
from injectors.sim.twin import Twin

Precision = Literal["float32", "bfloat16", "float64"]
Layout = Literal["tn", "nn", "nt"]
# Picoseconds of an element, float32.
PICOSECONDS = {
    "add": 260, "mul": 210, "div": 380, "exp": 330, "tanh": 560, "mean": 130, "amax": 160,
    "sum": 110, "rsqrt": 190, "copy": 190, "gather": 640, "scatter": 1100,
    "softmax": 1300, "softmax_back": 600, "log_softmax": 1300, "log_softmax_back": 2200,
    "layer_norm": 1100, "layer_norm_back": 960, "gelu": 2600, "gelu_back": 3600,
    "fused_gelu": 1100, "fused_gelu_back": 1600, "fused_softmax": 1100,
    "fused_softmax_back": 500, "fused_norm": 800, "fused_norm_back": 1100,
    "relu": 180, "relu_back": 480, "pool": 6500, "pool_back": 4000, "isnan": 1400,
    "attention": 1450, "attention_back": 4800,
}  # fmt: skip
# Arrays beyond a core's own cache take longer, by so many picoseconds an element.
CACHED_ELEMENTS, BEYOND_PS = (2**18, 2**19), (200, 600)
# Small products are slow: with few rows, columns or little to sum over they take as long as ones
# that have so many more.
SKINNY_ROWS, SKINNY_OTHERS = 30, 12
# Speed of products over float32's.
PRODUCT_Q16: dict[Precision, int] = {
    "float32": ONE, "bfloat16": ONE * 2, "float64": ONE // 2
}  # fmt: skip
ELEMENT_BYTES: dict[Precision, int] = {"float32": 4, "bfloat16": 2, "float64": 8}
DTYPES: dict[Precision, str] = {
    "float32": "float", "bfloat16": "c10::BFloat16", "float64": "double"
}  # fmt: skip


def twin_of(job: Job) -> Twin:
    """Return what the job was told; it must be the twin of a real one."""
    if job.twin is None:
        raise ValueError("job must be the twin of one that can run for real, got none")
    return job.twin


@dataclass(frozen=True)
class Operators:
    """Makes operators of one precision."""

    twin: Twin
    precision: Precision = "float32"

    def product(
        self,
        name: str,
        ops: tuple[str, ...],
        shape: tuple[int, int, int],
        count: int = 1,
        layout: Layout = "tn",
        work: str = "tokens",
    ) -> Launch:
        """`count` products of (m, k) and (k, n): `shape` is (m, n, k)."""
        m, n, k = shape
        speed, flops = self.twin.speeds.flops_per_s, 2 * m * n * k * count
        # A weight's gradient sums over the batch's rows, which are few as well.
        rows, others = (k, (m, n)) if layout == "nt" else (m, (n, k))
        share = PRODUCT_Q16[self.precision] * rows // (rows + SKINNY_ROWS)
        for size in others:
            share = share * size // (size + SKINNY_OTHERS)
        moved = (m * k + k * n + m * n) * count * ELEMENT_BYTES[self.precision]
        cost = Cost(compute_ns=rate_ns(flops, speed, max(share, 1)), flops=flops, bytes=moved)
        return self._launch(name, ops, cost, ((m, k), (k, n)), work)

    def pointwise(
        self,
        name: str,
        ops: tuple[str, ...],
        elements: int,
        kind: str,
        work: str = "tokens",
    ) -> Launch:
        """Element-wise work of a kind of PICOSECONDS."""
        wide = 2 if self.precision == "float64" else 1
        least = [limit for limit in CACHED_ELEMENTS if elements * wide > limit]
        beyond = BEYOND_PS[len(least) - 1] if least else 0
        nominal_ns = elements * (PICOSECONDS[kind] + beyond) * wide // 1000
        cost = Cost(compute_ns=nominal_ns * self.twin.speeds.pointwise_q16 >> 16)
        return self._launch(name, ops, cost, ((elements,),), work)

    def stream(self, name: str, ops: tuple[str, ...], moved: int, work: str = "tokens") -> Launch:
        """Work on arrays that no cache holds."""
        cost = Cost(memory_ns=rate_ns(moved, self.twin.speeds.memory_bytes_per_s), bytes=moved)
        return self._launch(name, ops, cost, ((moved // 4,),), work)

    def _launch(
        self,
        name: str,
        ops: tuple[str, ...],
        cost: Cost,
        dims: tuple[tuple[int, ...], ...],
        work: str,
    ) -> Launch:
        label = Label(ops, kernel=None, runtime=None, dims=dims, dtype=DTYPES[self.precision])
        return Launch(name, label, cost, Noise.INLINE, ONE, work)


__all__ = ["BACKWARD_Q16", "Operators", "Precision", "twin_of"]
