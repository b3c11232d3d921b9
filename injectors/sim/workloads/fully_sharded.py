"""A transformer whose parameters are sharded: each layer is gathered when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import PositiveInt

from injectors.sim.builder import Builder
from injectors.sim.launches import Exchange
from injectors.sim.nccl import Operation
from injectors.sim.program import Stream
from injectors.sim.tape import Layer, Parameter
from injectors.sim.workloads.blocks import SPACE
from injectors.sim.workloads.sharing import Sharing
from injectors.sim.workloads.transformer import Transformer

GROUP = "data"


class FullySharded(Sharing):
    """Parameters and gradients as in FSDP2, a layer at a time.

    The next layer is gathered beside the present one's computation, and a layer's gradients are
    scattered beside the next one's backward, both on one communicator. A layer's own gathering is
    waited for before the scattering that follows it is issued: so it never waits for that.
    Without overlap every gathering and scattering is waited for at once.
    """

    norm_group = GROUP

    def __init__(self, builder: Builder, layers: Sequence[Layer]) -> None:
        super().__init__(builder)
        self._layers, self._part, self._shared = layers, "", False
        self._ways = builder.size(GROUP)
        self._overlap = builder.job.framework.overlap

    def begin(self, micro_batch: str, last: bool) -> None:
        """Gather the first layer."""
        self._part = micro_batch
        self._shared = last or self.builder.job.framework.sync_every_microbatch
        if self._overlap:
            self._gather(0, "forward")

    def before_forward(self, number: int) -> None:
        """Wait for this layer's parameters and gather the next one's."""
        self._use(number, number + 1, "forward")

    def before_backward(self, number: int) -> None:
        """Wait for this layer's parameters, which the last layer still has from the forward."""
        if not self._overlap and number < len(self._layers) - 1:
            self._gather(number, "backward")
        if self._overlap and number == len(self._layers) - 1:
            self._gather(number - 1, "backward")

    def after_backward(self, number: int) -> None:
        """Scatter this layer's gradients, and gather the layer after the next."""
        if self._overlap and number > 0:
            self._wait(number - 1, "backward")
        if self._shared:
            self._scatter(number)
        if self._overlap:
            self._gather(number - 2, "backward")

    def finish(self) -> None:
        """Let computation wait for the last gradients."""
        if self._ways > 1 and self._shared:
            with self.builder.at(self._part, "fsdp"):
                self.builder.wait("wait", Stream.COMPUTE, Stream.DATA_PARALLEL)

    def updated(self, layers: Sequence[Layer]) -> list[Parameter]:
        """Each rank updates its shard of each parameter."""
        return [
            replace(parameter, elements=-(-parameter.elements // self._ways))
            for parameter in super().updated(layers)
        ]

    def _use(self, number: int, following: int, half: str) -> None:
        if self._overlap:
            self._wait(number, half)
            self._gather(following, half)
        else:
            self._gather(number, half)

    def _bytes(self, number: int) -> int:
        elements = sum(parameter.elements for parameter in self._layers[number].parameters)
        return elements * self.builder.costs.element_bytes

    def _gather(self, number: int, half: str) -> None:
        if 0 <= number < len(self._layers) and self._ways > 1:
            self._exchange(number, half, "all_gather")
            if not self._overlap:
                self._unpack(number, half)

    def _wait(self, number: int, half: str) -> None:
        if self._ways < 2:
            return
        with self.builder.at(self._part, "fsdp", self._layers[number].name, half):
            self.builder.wait("gathered", Stream.COMPUTE, Stream.DATA_PARALLEL)
        self._unpack(number, half)

    def _unpack(self, number: int, half: str) -> None:
        """Copy what was gathered to where the parameters lie."""
        make, size = self.builder.launches, self._bytes(number)
        kernel = f"{SPACE}split_with_sizes_copy_out_contiguous_no_cast_kernel"
        with self.builder.at(self._part, "fsdp", self._layers[number].name, half):
            ops = ("fsdp::split_with_sizes_copy", "aten::split_with_sizes_copy")
            launch = make.named("copy_out", kernel, 2 * size, ops)
            self.builder.launch(replace(launch, work="constant"))

    def _scatter(self, number: int) -> None:
        if self._ways < 2:
            return
        make, name = self.builder.launches, self._layers[number].name
        kernel = "void at::native::detail::chunk_cat_cuda_kernel"
        with self.builder.at(self._part, "fsdp", name, "backward"):
            ops = ("fsdp::chunk_cat", "aten::_chunk_cat")
            launch = make.named("chunk_cat", kernel, 2 * self._bytes(number), ops)
            self.builder.launch(replace(launch, work="constant"))
        self._exchange(number, "backward", "reduce_scatter")

    def _exchange(self, number: int, half: str, operation: Operation) -> None:
        builder, name = self.builder, self._layers[number].name
        words = "all_gather" if operation == "all_gather" else "post_backward_reduce"
        with builder.at(self._part, "fsdp", name, half):
            first = len(builder.program.ops)
            builder.exchange(
                Exchange(
                    operation,
                    operation,
                    self._bytes(number),
                    GROUP,
                    Stream.DATA_PARALLEL,
                    wait=not self._overlap,
                )
            )
            builder.span(f"FSDP::{words} ({name})", first)


class FsdpTransformer(Transformer):
    """Fully sharded data parallelism: parameters, gradients and optimizer state are split."""

    title: ClassVar[str] = "Transformer language model, fully sharded data-parallel training"
    layers: PositiveInt = 16
    hidden: PositiveInt = 3072
    heads: PositiveInt = 24
    micro_batch: PositiveInt = 2

    def share(self, builder: Builder, layers: Sequence[Layer]) -> FullySharded:
        """Return the sharding of all parameters."""
        return FullySharded(builder, layers)
