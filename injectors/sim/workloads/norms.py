"""Layer norms, in the form that the framework's settings ask for."""

from __future__ import annotations

from injectors.sim.costs import FUSED_NORM_Q16, REDUCTION_Q16, UNFUSED_NORM_Q16
from injectors.sim.launches import Launches
from injectors.sim.tape import Node, Parameter, Step
from injectors.sim.workloads import unfused
from injectors.sim.workloads.blocks import Blocks

Halves = tuple[tuple[Step, ...], tuple[Step, ...]]
FAMILY = "norm"
SPACE = "void at::native::(anonymous namespace)::"


def layer_norm(blocks: Blocks, name: str, tokens: int, width: int, residual: bool) -> Node:
    """A norm of `tokens` rows; compiled code adds the residual in the same kernel, if any."""
    make, elements = blocks.launches, tokens * width
    if blocks.form == "compiled":
        forward, backward = _compiled(make, elements, residual)
    elif blocks.form == "eager":
        forward, backward = _eager(make, elements)
    else:
        forward, backward = _unfused(make, elements)
    parameters = (Parameter("weight", width), Parameter("bias", width))
    return Node(name, "NativeLayerNormBackward0", forward, backward, parameters)


def _compiled(make: Launches, elements: int, residual: bool) -> Halves:
    ops, tensors = ("add", "native_layer_norm"), 4 if residual else 2
    forward = make.triton("norm", "per", ops, 0, elements, tensors, FAMILY)
    backward = make.triton("norm", "red", (*ops, "backward"), 1, elements, tensors + 1, FAMILY)
    back = ("native_layer_norm_backward",)
    weights = make.triton("weights", "red", back, 4, elements, 2, FAMILY)
    return (forward,), (backward, weights)


def _eager(make: Launches, elements: int) -> Halves:
    size, types = elements * make.costs.element_bytes, f"<{make.dtype}, float>"
    ops, back = ("aten::layer_norm", "aten::native_layer_norm"), "aten::native_layer_norm_backward"
    kernel = f"{SPACE}vectorized_layer_norm_kernel{types}"
    forward = make.named("norm", kernel, 2 * size, ops, FUSED_NORM_Q16, FAMILY)
    kernel = f"{SPACE}layer_norm_grad_input_kernel_vectorized{types}"
    inputs = make.named("norm", kernel, 3 * size, (back,), FUSED_NORM_Q16, FAMILY)
    kernel = f"{SPACE}GammaBetaBackwardCUDAKernel{types}"
    weights = make.named("weights", kernel, 2 * size, (back,), REDUCTION_Q16, FAMILY)
    return (forward,), (inputs, weights)


def _unfused(make: Launches, elements: int) -> Halves:
    share = UNFUSED_NORM_Q16
    forward = unfused.unfused(make, "norm", elements, unfused.NORM, share, FAMILY)
    backward = unfused.unfused(make, "norm", elements, unfused.NORM_BACKWARD, share, FAMILY)
    weights = make.reduction("weights", elements, ("aten::sum",))
    return forward, (*backward, weights)
