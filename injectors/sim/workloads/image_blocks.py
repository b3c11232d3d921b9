"""Activations, sums and changes of size of images, as nodes."""

from __future__ import annotations

from typing import Literal, NamedTuple

from injectors.sim.costs import ACTIVATION_Q16, ADD_Q16
from injectors.sim.tape import Node
from injectors.sim.workloads.blocks import Blocks
from injectors.sim.workloads.convolution import Images

NATIVE = "void at::native::(anonymous namespace)::"
INDEX_BYTES = 8


class _Activation(NamedTuple):
    ahead: str
    back: str
    functor: str
    share_q16: int


ACTIVATIONS = {
    "relu": _Activation("aten::relu_", "aten::threshold_backward", "clamp_min", ADD_Q16),
    "silu": _Activation("aten::silu", "aten::silu_backward", "silu_kernel", ACTIVATION_Q16),
}


def activation(
    blocks: Blocks, name: str, images: Images, kind: Literal["relu", "silu"] = "relu"
) -> tuple[Node, ...]:
    """An activation; none where the compiled kernel of the norm before it does it."""
    if blocks.form == "compiled":
        return ()
    make, elements, how = blocks.launches, images.elements, ACTIVATIONS[kind]
    forward = make.elementwise(kind, elements, (how.ahead,), how.functor, 2, how.share_q16)
    back = f"{how.functor}_backward"
    backward = make.elementwise(kind, elements, (how.back,), back, 3, how.share_q16)
    return (Node(name, f"{kind.capitalize()}Backward0", (forward,), (backward,)),)


def add(blocks: Blocks, name: str, images: Images) -> Node:
    """The sum of two branches; backward sums the gradients that come back through both."""
    make = blocks.launches
    backward = make.elementwise("add", images.elements, ("aten::add",))
    if blocks.form == "compiled":
        forward = make.triton("add", "poi", ("add", "relu"), 4, images.elements, 3)
        backward = make.triton("add", "poi", ("add", "threshold_backward"), 5, images.elements, 3)
    else:
        forward = make.elementwise("add", images.elements, ("aten::add_",))
    return Node(name, "AddBackward0", (forward,), (backward,))


def concatenate(blocks: Blocks, name: str, images: Images) -> Node:
    """Channels of two images next to each other; `images` are what comes out."""
    make, size = blocks.launches, images.elements * blocks.costs.element_bytes
    kernel = f"{NATIVE}CatArrayBatchedCopy_aligned16_contig<{make.dtype}, unsigned int, 4, 128, 1>"
    forward = make.named("cat", kernel, 2 * size, ("aten::cat",), ACTIVATION_Q16)
    backward = make.elementwise("cat", images.elements, ("aten::contiguous",), "direct_copy", 2)
    return Node(name, "CatBackward0", (forward,), (backward,))


def pool(blocks: Blocks, name: str, images: Images, stride: int) -> Node:
    """A maximum over neighbouring pixels."""
    make, out = blocks.launches, images.to(images.channels, stride)
    moved = (images.elements + out.elements) * blocks.costs.element_bytes
    moved += INDEX_BYTES * out.elements
    kernel = f"{NATIVE}max_pool_{{}}_nhwc<{make.dtype}, int>"
    op = "aten::max_pool2d_with_indices"
    ahead, back = (kernel.format(way) for way in ("forward", "backward"))
    forward = make.named("pool", ahead, moved, ("aten::max_pool2d", op), ACTIVATION_Q16)
    backward = make.named("pool", back, moved, (f"{op}_backward",), ACTIVATION_Q16)
    return Node(name, "MaxPool2DWithIndicesBackward0", (forward,), (backward,))


def upsample(blocks: Blocks, name: str, images: Images) -> Node:
    """Every pixel four times; `images` are what comes out."""
    make = blocks.launches
    moved = images.elements * blocks.costs.element_bytes * 5 // 4
    kernel = f"{NATIVE}upsample_nearest2d_{{}}nhwc_out_frame<{make.dtype}>"
    op = "aten::upsample_nearest2d"
    ahead, back = (kernel.format(way) for way in ("", "backward_"))
    forward = make.named("upsample", ahead, moved, (op,), ACTIVATION_Q16)
    backward = make.named("upsample", back, moved, (f"{op}_backward",), ACTIVATION_Q16)
    return Node(name, "UpsampleNearest2DBackward0", (forward,), (backward,))


def mean(blocks: Blocks, name: str, images: Images) -> Node:
    """The mean of each channel of each image."""
    make = blocks.launches
    forward = make.reduction("mean", images.elements, ("aten::mean",), "MeanOps")
    backward = make.elementwise("mean", images.elements, ("aten::div",), "DivFunctor", 1)
    return Node(name, "MeanBackward1", (forward,), (backward,))
