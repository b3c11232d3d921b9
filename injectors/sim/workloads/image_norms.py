"""Norms of images, as nodes in the form that the framework's settings ask for."""

from __future__ import annotations

from injectors.sim.costs import FUSED_NORM_Q16, REDUCTION_Q16, UNFUSED_NORM_Q16
from injectors.sim.tape import Node, Parameter, Step
from injectors.sim.workloads import cudnn, unfused
from injectors.sim.workloads.blocks import Blocks
from injectors.sim.workloads.convolution import Images

Halves = tuple[tuple[Step, ...], tuple[Step, ...]]
BATCH_NORM = ("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm")
GROUP_NORM = ("aten::group_norm", "aten::native_group_norm")
GROUP_NORM_BACK = ("aten::native_group_norm_backward",)
NATIVE = "void at::native::(anonymous namespace)::"


def batch_norm(blocks: Blocks, name: str, images: Images) -> Node:
    """A norm over each channel, whose statistics take a pass over all images of their own."""
    halves = {"compiled": _compiled, "eager": _cudnn_batch, "unfused": _unfused}
    forward, backward = halves[blocks.form](blocks, images)
    return Node(name, "CudnnBatchNormBackward0", forward, backward, _affine(images))


def group_norm(blocks: Blocks, name: str, images: Images) -> Node:
    """A norm over each sample's groups of channels."""
    halves = {"compiled": _compiled, "eager": _native_group, "unfused": _unfused}
    forward, backward = halves[blocks.form](blocks, images)
    return Node(name, "NativeGroupNormBackward0", forward, backward, _affine(images))


def _affine(images: Images) -> tuple[Parameter, ...]:
    return Parameter("weight", images.channels), Parameter("bias", images.channels)


def _compiled(blocks: Blocks, images: Images) -> Halves:
    """Two kernels each way; the second of each does the activation that follows as well."""
    make, count = blocks.launches, images.elements
    forward = (
        make.triton("norm", "red", ("var_mean",), 0, count, 1, "norm"),
        make.triton("apply", "poi", ("norm", "activation"), 1, count, 2, "norm"),
    )
    backward = (
        make.triton("norm", "red", ("norm_backward",), 2, count, 2, "norm"),
        make.triton("apply", "poi", ("norm_backward", "activation"), 3, count, 3, "norm"),
    )
    return forward, backward


def _cudnn_batch(blocks: Blocks, images: Images) -> Halves:
    """The images are read twice each way, since they don't fit the cache."""
    make, size = blocks.launches, images.elements * blocks.costs.element_bytes
    ahead, back = (cudnn.batch_norm(make.precision, backward) for backward in (False, True))
    ops = ("aten::cudnn_batch_norm_backward",)
    forward = make.named("norm", ahead, 3 * size, BATCH_NORM, FUSED_NORM_Q16, "norm")
    backward = make.named("norm", back, 5 * size, ops, FUSED_NORM_Q16, "norm")
    return (forward,), (backward,)


def _native_group(blocks: Blocks, images: Images) -> Halves:
    make, count = blocks.launches, images.elements
    size = count * blocks.costs.element_bytes

    def kernel(name: str) -> str:
        return f"{NATIVE}{name}<{make.dtype}>"

    back, share = GROUP_NORM_BACK, REDUCTION_Q16
    forward = (
        make.named("norm", kernel("RowwiseMomentsCUDAKernel"), size, GROUP_NORM, share, "norm"),
        make.elementwise("apply", count, GROUP_NORM, "GroupNormKernelImpl", 2, FUSED_NORM_Q16),
    )
    sums = kernel("ComputeInternalGradientsCUDAKernel")
    weights = kernel("GammaBetaBackwardCUDAKernel")
    backward = (
        make.named("norm", sums, 2 * size, back, share, "norm"),
        make.elementwise("apply", count, back, "GroupNormBackwardKernelImpl", 3, FUSED_NORM_Q16),
        make.named("weights", weights, size // 16, back, share, "norm"),
    )
    return forward, backward


def _unfused(blocks: Blocks, images: Images) -> Halves:
    """The norm written out in Python; each of its operators goes through memory."""
    make, count, share = blocks.launches, images.elements, UNFUSED_NORM_Q16
    forward = unfused.unfused(make, "norm", count, unfused.NORM, share, "norm")
    backward = unfused.unfused(make, "norm", count, unfused.NORM_BACKWARD, share, "norm")
    return forward, (*backward, make.reduction("weights", count, ("aten::sum",)))
