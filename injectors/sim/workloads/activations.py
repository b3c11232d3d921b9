"""Activations, in the form that the framework's settings ask for."""

from __future__ import annotations

from injectors.sim.costs import ACTIVATION_Q16
from injectors.sim.tape import Node
from injectors.sim.workloads import unfused
from injectors.sim.workloads.blocks import Blocks

FAMILY = "elementwise"


def gelu(blocks: Blocks, name: str, elements: int) -> Node:
    """GELU of `elements`: one kernel each way, or its formula written out."""
    make, share = blocks.launches, ACTIVATION_Q16
    if blocks.form == "compiled":
        forward = make.triton("gelu", "poi", ("gelu",), 3, elements, 2)
        backward = make.triton("gelu", "poi", ("gelu_backward",), 5, elements, 3)
        return Node(name, "GeluBackward0", (forward,), (backward,))
    if blocks.form == "eager":
        ops, back = ("aten::gelu",), ("aten::gelu_backward",)
        forward = make.elementwise("gelu", elements, ops, "GeluCUDAKernelImpl", 2, share)
        backward = make.elementwise("gelu", elements, back, "GeluBackwardCUDAKernelImpl", 3, share)
        return Node(name, "GeluBackward0", (forward,), (backward,))
    return Node(
        name,
        "MulBackward0",
        unfused.unfused(make, "gelu", elements, unfused.GELU, share, FAMILY),
        unfused.unfused(make, "gelu", elements, unfused.GELU_BACKWARD, share, FAMILY),
    )
