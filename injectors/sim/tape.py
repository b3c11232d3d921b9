"""Models as what their layers launch, forward and backward, and the writing down of both.

As in autograd each node has a forward half and a backward half joined by a sequence number; the
backward goes through layers and nodes in reverse, and hands on the gradients of each node as soon
as they are there. A compiled layer is one node to autograd, so that its gradients come at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from injectors.sim.builder import Builder
from injectors.sim.job import ONE
from injectors.sim.launches import BACKWARD_Q16, COMPILED_Q16, Exchange, Launch, ReadBack

Step = Launch | Exchange | ReadBack
ENTER_COMPILED_NS = 30_000  # guards and the entry into compiled code
STACK_NS = 90_000  # anomaly mode notes the Python stack at every node of the forward
COMPILED = "CompiledFunctionBackward"
COMPILED_SPANS = ("Torch-Compiled Region: 0/0", "CompiledFunction")


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
        first = len(builder.program.ops)
        with builder.under(layer.name, layer.span):
            if layer.compiled:
                builder.host("enter", ENTER_COMPILED_NS)
            for node in layer.nodes:
                with builder.under(node.name):
                    self._steps(node.forward, self._joined(layer, node), ONE)
                    if self._looks and not layer.compiled:
                        builder.host("stack", STACK_NS)
        for name in COMPILED_SPANS if layer.compiled else ():
            builder.span(name, first, "cpu_op")

    def backward(
        self, layer: Layer, ready: Callable[[Sequence[Parameter]], None] = lambda _: None
    ) -> None:
        """Write a layer's backward half; `ready` is told of gradients as they come."""
        nodes = [node for node in reversed(layer.nodes) if node.backward]
        with self.builder.under(layer.name):
            if not layer.compiled:
                for node in nodes:
                    self._backward(layer, node, ready)
                return
            with self._evaluating(COMPILED):
                for node in nodes:
                    with self.builder.under(node.name):
                        self._steps(node.backward, self._sequence_of(layer, node), ONE)
            if self._looks and nodes:
                self._look_for_nan(nodes[-1].backward[-1:], layer.parameters)
            for node in nodes:
                with self.builder.under(node.name):
                    self._accumulate(node)
                ready(node.parameters)

    def _backward(
        self, layer: Layer, node: Node, ready: Callable[[Sequence[Parameter]], None]
    ) -> None:
        with self.builder.under(node.name):
            with self._evaluating(node.function):
                self._steps(node.backward, self._sequence_of(layer, node), BACKWARD_Q16)
            if self._looks:
                self._look_for_nan(node.backward, ())
            self._accumulate(node)
        ready(node.parameters)

    def _joined(self, layer: Layer, node: Node) -> int | None:
        """Number a node that has a backward half; a compiled layer has the number of its last."""
        if not node.backward:
            return None
        number = self.builder.next_sequence()
        self._sequences[layer.name, "" if layer.compiled else node.name] = number
        return None if layer.compiled and node is not _last(layer) else number

    def _sequence_of(self, layer: Layer, node: Node) -> int | None:
        if layer.compiled:
            return self._sequences.get((layer.name, "")) if node is _last(layer) else None
        return self._sequences.get((layer.name, node.name))

    @contextmanager
    def _evaluating(self, function: str) -> Iterator[None]:
        """Name what the engine of autograd evaluates."""
        first = len(self.builder.program.ops)
        yield
        self.builder.span(f"autograd::engine::evaluate_function: {function}", first, "cpu_op")
        self.builder.span(function, first, "cpu_op")

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

    def _look_for_nan(self, steps: Sequence[Step], parameters: Sequence[Parameter]) -> None:
        """Anomaly mode reads back after every node whether its gradients have a NaN.

        About a third of what kernels move is what they write.
        """
        make, builder = self.builder.launches, self.builder
        moved = sum(step.cost.bytes for step in steps if isinstance(step, Launch))
        elements = moved // (3 * make.costs.element_bytes) + 1
        elements += sum(parameter.elements for parameter in parameters)
        builder.launch(make.elementwise("isnan", elements, ("aten::isnan", "aten::ne"), tensors=2))
        builder.launch(make.reduction("any", elements, ("aten::any",), "or_functor"))
        builder.read_back("is_nan")

    def _accumulate(self, node: Node) -> None:
        """Add gradients to those of earlier micro-batches; the first ones are kept as they are."""
        make = self.builder.launches
        for parameter in node.parameters if self.adds else ():
            name = f"{parameter.name}.accumulate"
            launch = make.elementwise(name, parameter.elements, ("aten::add_",))
            with self._evaluating("torch::autograd::AccumulateGrad"):
                self.builder.launch(launch, host_q16=COMPILED_Q16)


def _last(layer: Layer) -> Node:
    """Return the last node that has a backward half."""
    return next(node for node in reversed(layer.nodes) if node.backward)
