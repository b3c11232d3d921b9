"""How ranks share a model: what happens around the halves of layers, as a training step asks."""

from __future__ import annotations

from collections.abc import Sequence

from injectors.sim.builder import Builder
from injectors.sim.tape import Layer, Parameter


class Sharing:
    """Every rank for itself; subclasses add what ranks exchange.

    The step says with `begin` which micro-batch follows and whether gradients are shared after
    it, then calls the others around each layer, and `finish` after the backward.
    """

    span: str | None = None  # name of the model's forward in the trace
    adds: bool = True  # whether kernels of their own add up the gradients of micro-batches
    norm_group: str | None = None  # partition over which the gradients' norm is summed

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def begin(self, micro_batch: str, last: bool) -> None:
        """Begin a micro-batch, by its part of paths; `last`: gradients are shared after it."""

    def before_forward(self, number: int) -> None:
        """Prepare the `number`-th layer's forward half."""

    def after_forward(self, number: int) -> None:
        """Clean up after it."""

    def before_backward(self, number: int) -> None:
        """Prepare the `number`-th layer's backward half."""

    def ready(self, parameters: Sequence[Parameter]) -> None:
        """Take gradients as they come."""

    def after_backward(self, number: int) -> None:
        """Clean up after a layer's backward half."""

    def finish(self) -> None:
        """Wait for what is still on its way, after the backward of a micro-batch."""

    def settle(self) -> None:
        """Wait for what was not waited for then, before the optimizer."""

    def updated(self, layers: Sequence[Layer]) -> list[Parameter]:
        """Return the parameters that this rank's optimizer updates."""
        return [parameter for layer in layers for parameter in layer.parameters]
