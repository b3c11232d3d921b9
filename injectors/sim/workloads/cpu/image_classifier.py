"""The real image classifier as a simulated job on CPU cores."""

from __future__ import annotations

from dataclasses import replace

from injectors.sim.builder import Builder
from injectors.sim.job import ONE, Job
from injectors.sim.launches import Launch
from injectors.sim.program import Program
from injectors.sim.tape import Layer, Node, Parameter, Step
from injectors.sim.workloads.cpu.blocks import Parts
from injectors.sim.workloads.cpu.operators import Operators, twin_of
from injectors.sim.workloads.cpu.step import CpuStep
from injectors.workloads.image_classifier import ImageClassifier

SGD_NS = 7_000  # of an update, for each parameter
CONVOLUTION_Q16 = ONE * 3 // 2  # the vendor's speed over that of large products


def compile_image_classifier(job: Job, model: ImageClassifier) -> Program:
    """Write the step."""
    operators = Operators(twin_of(job))
    builder = Builder(job)
    step = ImageStep(builder, operators, lambda count: layers(operators, model, count), model)
    step.write()
    return builder.program


def layers(operators: Operators, model: ImageClassifier, samples: int) -> list[Layer]:
    """Return the network for a number of images: convolutions, each with ReLU and pooling."""
    found, width = [], 3
    edge = model.pixels - (model.sizes - 1) // 2  # the mean of the sizes
    for number in range(model.blocks):
        wider = model.channels * 2**number
        found.append(_block(operators, number, (samples, width, edge), wider))
        width, edge = wider, edge // 2
    parts = Parts(operators)
    mean = parts.pointwise("mean", "mean", samples * width * edge * edge)
    nodes = (
        Node("mean", "MeanBackward1", (mean,), (replace(mean),)),
        parts.linear("logits", samples, width, 10),
        parts.loss("loss", samples, 10),
    )
    return [*found, Layer("head", nodes)]


def _block(operators: Operators, number: int, images: tuple[int, int, int], wider: int) -> Layer:
    samples, _, edge = images
    elements = samples * wider * edge * edge
    parts = Parts(operators)
    relu = parts.pointwise("relu", "relu", elements)
    back = operators.pointwise("relu", ("aten::threshold_backward",), elements, "relu_back")
    pool = operators.pointwise("pool", ("aten::max_pool2d",), elements, "pool")
    unpool = operators.pointwise(
        "pool", ("aten::max_pool2d_with_indices_backward",), elements, "pool_back"
    )
    nodes = (
        _convolution(operators, number, images, wider),
        Node("relu", "ReluBackward0", (relu,), (back,)),
        Node("pool", "MaxPool2DWithIndicesBackward0", (pool,), (unpool,)),
    )
    return Layer(f"block{number}", nodes)


def _convolution(
    operators: Operators, number: int, images: tuple[int, int, int], wider: int
) -> Node:
    samples, width, edge = images

    def product(name: str, ops: tuple[str, ...]) -> Launch:
        shape = (samples * edge * edge, wider, 9 * width)
        made = operators.product(name, ops, shape)
        cost = replace(made.cost, compute_ns=made.cost.compute_ns * ONE // CONVOLUTION_Q16)
        return replace(made, cost=cost)

    back = ("aten::convolution_backward",)
    backward: tuple[Step, ...] = (product("wgrad", back),)
    if number:
        backward = (product("dgrad", back), *backward)
    forward = product("convolution", ("aten::conv2d", "aten::mkldnn_convolution"))
    parameters = (Parameter("weight", 9 * width * wider), Parameter("bias", wider))
    return Node("convolution", "ConvolutionBackward0", (forward,), backward, parameters)


class ImageStep(CpuStep):
    """A step that takes its batch from a loader, and ends with SGD."""

    def __init__(self, builder: Builder, operators: Operators, layers_of, model) -> None:  # type: ignore[no-untyped-def]
        super().__init__(builder, operators, layers_of, model.batch_size)
        self._late = operators.twin.number("late_fetch")

    def take_batch(self) -> None:
        """Take the loader's next batch."""
        self.builder.next_batch(self.operators.twin.speeds.unpack_ns)

    def update(self) -> None:
        """Write SGD with momentum."""
        builder = self.builder
        with builder.under("optimizer"):
            first = len(builder.program.ops)
            builder.host("sgd", SGD_NS * len(self.parameters), ("aten::_foreach_add_",))
            builder.span("Optimizer.step#SGD.step", first)
