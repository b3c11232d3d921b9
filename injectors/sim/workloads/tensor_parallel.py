"""A transformer whose layers are shared by the GPUs of a host, with data parallelism beyond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import PositiveInt

from injectors.sim.builder import Builder
from injectors.sim.job import Places
from injectors.sim.machine import Machine
from injectors.sim.tape import Layer
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.transformer import Transformer


class TensorParallelBuckets(Buckets):
    """Gradients of what a rank holds of each layer; their norm is summed over the others'."""

    norm_group = "tensor"


class TensorParallelTransformer(Transformer):
    """Each layer is split over `tensor` ranks, which sum its outputs as they are needed.

    Four sums a layer and micro-batch, two forward and two backward, nothing hides them.
    """

    title: ClassVar[str] = "Transformer language model, tensor-parallel training"
    layers: PositiveInt = 12
    hidden: PositiveInt = 4096
    heads: PositiveInt = 32
    micro_batch: PositiveInt = 2
    accumulation: PositiveInt = 2
    tensor: PositiveInt = 8

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Tensor parallelism within a host, data parallelism with what is left."""
        ways = min(self.tensor, ranks)
        if ranks % ways or self.heads % ways:
            raise ValueError(
                f"ranks and heads must be multiples of tensor, got {ranks} ranks and"
                f" {self.heads} heads for {ways}"
            )
        return {"data": ranks // ways, "tensor": ways}

    def places(self, ranks: int, machine: Machine) -> Places:
        """Fill host after host; a tensor-parallel group lies on one."""
        found = super().places(ranks, machine)
        if found.per_host % found.tensor:
            raise ValueError(
                f"tensor must divide the {found.per_host} ranks of a host, got {found.tensor}"
            )
        return found

    def share(self, builder: Builder, layers: Sequence[Layer]) -> TensorParallelBuckets:
        """Return data parallelism of what each rank holds."""
        return TensorParallelBuckets(builder, layers)
