"""The served model as the sizes that an engine's work depends on."""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.costs import Costs
from injectors.sim.job import Job
from injectors.sim.serving.clients import least_blocks
from injectors.sim.serving.request import BLOCK_TOKENS

USED_Q16 = 58982  # 0.9 of the device's memory, as gpu_memory_utilization has it
RESERVED_BYTES = 4 * 2**30  # activations, graphs and the context


@dataclass(frozen=True)
class Model:
    """A decoder with grouped queries and gated products, each layer split over `tensor` ranks."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    tensor: int

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads

    @property
    def own_heads(self) -> int:
        """Query heads of a rank."""
        return self.heads // self.tensor

    @property
    def own_kv_heads(self) -> int:
        """Heads of keys and values of a rank; it has at least one."""
        return max(1, self.kv_heads // self.tensor)

    def products(self) -> dict[str, tuple[int, int]]:
        """Weights of a layer on a rank by name: (outputs, inputs) of each product."""
        heads = self.own_heads + 2 * self.own_kv_heads
        inner = self.intermediate // self.tensor
        return {
            "qkv": (heads * self.head, self.hidden),
            "o_proj": (self.hidden, self.own_heads * self.head),
            "gate_up": (2 * inner, self.hidden),
            "down": (self.hidden, inner),
        }

    def layer_elements(self) -> int:
        """Weights of a layer on a rank."""
        return sum(outputs * inputs for outputs, inputs in self.products().values())

    def weight_elements(self) -> int:
        """Weights on a rank: layers, embeddings and the projection onto the vocabulary."""
        return (
            self.layers * self.layer_elements() + 2 * self.vocabulary * self.hidden // self.tensor
        )

    def kv_elements(self) -> int:
        """Keys and values of one token in one layer on a rank."""
        return 2 * self.own_kv_heads * self.head


def block_bytes(model: Model, costs: Costs) -> int:
    """Bytes that a block of keys and values takes on a rank."""
    return BLOCK_TOKENS * model.layers * model.kv_elements() * costs.element_bytes


def pool_blocks(job: Job, model: Model) -> int:
    """Blocks of an engine's pool: as set, or what memory holds; at least the longest request."""
    fewest = least_blocks(job.serving)
    if job.serving.kv_blocks:
        return max(job.serving.kv_blocks, fewest)
    costs = Costs(job.machine, job.framework)
    memory = job.machine.gpu.memory_bytes if job.machine.gpu else job.machine.memory_bytes
    weights = model.weight_elements() * costs.element_bytes
    left = (memory * USED_Q16 >> 16) - RESERVED_BYTES - weights
    return max(left // block_bytes(model, costs), fewest)
