"""Models as what their layers launch, forward and backward, and the writing down of both.

As in autograd each node has a forward half and a backward half joined by a sequence number; the
backward goes through layers and nodes in reverse, and hands on the gradients of each node as soon
as they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from injectors.sim.builder import Builder
from injectors.sim.job import ONE
from injectors.sim.launches import BACKWARD_Q16, COMPILED_Q16, Exchange, Launch, ReadBack

Step = Launch | Exchange | ReadBack
ENTER_COMPILED_NS = 30_000  # guards and the entry into compiled code
STACK_NS = 90_000  # anomaly mode notes the Python stack at every node of the forward


@dataclass(frozen=True)
class Parameter:
    """A tensor of parameters, of which the rank holds `elements`.

    `group` is the partition of ranks that hold the same ones.
    """

    name: str
    elements: int
    group: str = "data"


@dataclass(frozen=True)
class Node:
    """One differentiable operation.

    Attributes:
        name: Part of its ops' paths.
        function: Autograd's name of its backward half.
        forward, backward: What is launched, in order.
        parameters: Those whose gradients its backward half makes.
    """

    name: str
    function: str
    forward: tuple[Step, ...]
    backward: tuple[Step, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Layer:
    """Nodes that belong together; `compiled`: run as one piece of compiled code."""

    name: str
    nodes: tuple[Node, ...]
    compiled: bool = False
    span: str | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters of its nodes."""
        return tuple(parameter for node in self.nodes for parameter in node.parameters)


@dataclass
class Tape:
    """Writes the halves of layers under a builder's present part.

    Attributes:
        adds: Whether kernels of their own add gradients to those of earlier micro-batches.
    """

    builder: Builder
    adds: bool = False
    _sequences: dict[tuple[str, str], int] = field(default_factory=dict)

    def forward(self, layer: Layer) -> None:
        """Write a layer's forward half."""
        builder = self.builder
        with builder.under(layer.name, layer.span):
            if layer.compiled:
                builder.host("enter", ENTER_COMPILED_NS, ("Torch-Compiled Region: 0/0",))
            for node in layer.nodes:
                number = builder.next_sequence()
                self._sequences[layer.name, node.name] = number
                with builder.under(node.name):
                    self._steps(node.forward, number if node.backward else None, ONE)
                    if self._looks and not layer.compiled:
                        builder.host("stack", STACK_NS)

    def backward(
        self, layer: Layer, ready: Callable[[Sequence[Parameter]], None] = lambda _: None
    ) -> None:
        """Write a layer's backward half; `ready` is told of gradients as they come."""
        builder = self.builder
        host_q16 = ONE if layer.compiled else BACKWARD_Q16
        with builder.under(layer.name):
            for node in reversed(layer.nodes):
                if not node.backward:
                    continue
                with builder.under(node.name):
                    self._half(node, self._sequences.get((layer.name, node.name)), host_q16)
                    self._accumulate(node)
                ready(node.parameters)

    def _half(self, node: Node, sequence: int | None, host_q16: int) -> None:
        builder, name = self.builder, node.function
        first = len(builder.program.ops)
        self._steps(node.backward, sequence, host_q16)
        builder.span(f"autograd::engine::evaluate_function: {name}", first, "cpu_op")
        builder.span(name, first, "cpu_op")
        if self._looks:
            self._look_for_nan(node)

    def _steps(self, steps: Sequence[Step], sequence: int | None, host_q16: int) -> None:
        for step in steps:
            if isinstance(step, Exchange):
                self.builder.exchange(step)
            elif isinstance(step, ReadBack):
                self.builder.read_back(step.name)
            else:
                self.builder.launch(step, sequence, host_q16)
                sequence = None

    @property
    def _looks(self) -> bool:
        """Whether anomaly mode is on."""
        return self.builder.job.framework.debug == "anomaly"

    def _look_for_nan(self, node: Node) -> None:
        """Anomaly mode reads back after every node whether its gradients have a NaN.

        Of what its kernels move, about a third is what they write.
        """
        make, builder = self.builder.launches, self.builder
        moved = sum(step.cost.bytes for step in node.backward if isinstance(step, Launch))
        elements = moved // (3 * make.costs.element_bytes) + 1
        builder.launch(make.elementwise("isnan", elements, ("aten::isnan", "aten::ne"), tensors=2))
        builder.launch(make.reduction("any", elements, ("aten::any",), "or_functor"))
        builder.read_back("is_nan")

    def _accumulate(self, node: Node) -> None:
        """Add gradients to those of earlier micro-batches; the first ones are kept as they are."""
        if not self.adds:
            return
        name = "torch::autograd::AccumulateGrad"
        for parameter in node.parameters:
            first = len(self.builder.program.ops)
            self.builder.launch(
                self.builder.launches.elementwise(
                    f"{parameter.name}.accumulate", parameter.elements, ("aten::add_",)
                ),
                host_q16=COMPILED_Q16,
            )
            self.builder.span(f"autograd::engine::evaluate_function: {name}", first, "cpu_op")
            self.builder.span(name, first, "cpu_op")
