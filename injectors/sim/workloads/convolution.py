"""Images and convolutions of them, as nodes.

Images lie in memory with their channels next to each other, as cuDNN's tensor cores want them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from injectors.sim.job import ONE
from injectors.sim.launches import Launch
from injectors.sim.program import Noise
from injectors.sim.tape import Node, Parameter, Step
from injectors.sim.workloads import cudnn
from injectors.sim.workloads.blocks import Blocks

PLAN_Q16 = ONE * 3 // 2  # host time of looking up cuDNN's plan, over an ordinary operator
# Speed over that of large products: 3 x 3 and larger, 1 x 1, and few channels to sum over.
DEEP_Q16, POINT_Q16, SHALLOW_Q16 = 49152, 39322, 19661
SHALLOW_CHANNELS = 16
CALLED = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution")


class Images(NamedTuple):
    """Activations of shape (samples, channels, edge, edge)."""

    samples: int
    channels: int
    edge: int

    @property
    def pixels(self) -> int:
        """Pixels of all samples."""
        return self.samples * self.edge * self.edge

    @property
    def elements(self) -> int:
        """Numbers in all."""
        return self.pixels * self.channels

    def to(self, channels: int, stride: int = 1) -> Images:
        """Return what a convolution makes of these.

        >>> Images(8, 3, 7).to(64, stride=2)
        Images(samples=8, channels=64, edge=4)
        """
        return Images(self.samples, channels, -(-self.edge // stride))


def convolution(
    blocks: Blocks,
    name: str,
    images: Images,
    channels: int,
    edge: int = 3,
    stride: int = 1,
    first: bool = False,
) -> Node:
    """Filters of `edge` x `edge`; the `first` of a network needs no gradient of its input."""
    out = images.to(channels, stride)

    def launch(step: str, way: cudnn.Way) -> Launch:
        return _product(blocks, step, way, images, out, edge)

    backward: tuple[Step, ...] = (launch("wgrad", "wgrad"),)
    if not first:
        backward = (launch("dgrad", "dgrad"), *backward)
    weight = Parameter("weight", images.channels * channels * edge * edge)
    forward = (launch("convolution", "fprop"),)
    return Node(name, "ConvolutionBackward0", forward, backward, (weight,))


def _product(
    blocks: Blocks, step: str, way: cudnn.Way, images: Images, out: Images, edge: int
) -> Launch:
    """All three are products of the same size; they differ in what is summed over."""
    costs, make = blocks.costs, blocks.launches
    depth = images.channels * edge * edge
    moved = (images.elements + out.elements + depth * out.channels) * costs.element_bytes
    share = SHALLOW_Q16
    if images.channels >= SHALLOW_CHANNELS:
        share = DEEP_Q16 if edge > 1 else POINT_Q16
    gpu = costs.machine.gpu
    made = make.named(step, "", 0, CALLED if way == "fprop" else ("aten::convolution_backward",))
    label = replace(
        made.label,
        kernel=cudnn.convolution(gpu, make.precision, way) if gpu else None,
        dims=(tuple(images) + images[2:], (out.channels, images.channels, edge, edge)),
        grid=(-(-out.pixels // 128), -(-out.channels // 128), 1),
        block=(256, 1, 1),
        registers=238,
        shared_bytes=98_304,
    )
    return replace(
        made,
        label=label,
        cost=costs.product(2 * out.elements * depth, moved, "convolution", share),
        noise=Noise.GEMM,
        host_q16=made.host_q16 * PLAN_Q16 >> 16,
    )
