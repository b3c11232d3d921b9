"""Layer norm, GELU and softmax, each as one kernel or as a chain of small ones.

`fused` is chosen at every call and changes no result beyond rounding: Triton kernels on CUDA,
inductor's kernels or single ops elsewhere. `version` is one of injectors.kernels.launch.LAYOUTS
for the fused Triton kernels and means nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from injectors.kernels import inductor

__all__ = [
    "bias_gelu",
    "gelu",
    "layer_norm",
    "masked_softmax",
    "residual_layer_norm",
    "softmax",
    "warm_up",
]

Shape = tuple[int, ...]


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float = 1e-5,
    *,
    fused: bool,
    version: int = 0,
) -> torch.Tensor:
    """Normalise the last axis of `x` (..., n), then scale and shift by weight and bias (n,)."""
    if x.is_cuda:
        return _triton().layer_norm(x, weight, bias, eps, fused, version)
    return inductor.call(inductor.layer_norm, x, weight, bias, eps, fused=fused)


def gelu(x: torch.Tensor, *, fused: bool, version: int = 0) -> torch.Tensor:
    """Return GELU in its tanh form, any shape."""
    if x.is_cuda:
        return _triton().gelu(x, fused, version)
    return inductor.call(inductor.gelu, x, fused=fused)


def softmax(x: torch.Tensor, *, fused: bool, version: int = 0) -> torch.Tensor:
    """Return the softmax over the last axis of `x` (..., n)."""
    if x.is_cuda:
        return _triton().softmax(x, fused, version)
    return inductor.call(inductor.softmax, x, fused=fused)


def bias_gelu(x: torch.Tensor, bias: torch.Tensor, *, fused: bool) -> torch.Tensor:
    """Add a bias of the last axis, then GELU; by inductor or op by op on every device."""
    return inductor.call(inductor.bias_gelu, x, bias, fused=fused)


def residual_layer_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float = 1e-5,
    *,
    fused: bool,
) -> torch.Tensor:
    """Add the residual stream, then layer norm; by inductor or op by op on every device."""
    function = inductor.residual_layer_norm
    return inductor.call(function, x, residual, weight, bias, eps, fused=fused)


def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor, scale: float, *, fused: bool
) -> torch.Tensor:
    """Scale scores, add the mask, then softmax; by inductor or op by op on every device."""
    return inductor.call(inductor.masked_softmax, scores, mask, scale, fused=fused)


def warm_up(
    shapes: Mapping[str, Sequence[Shape]], dtype: torch.dtype, device: torch.device | str
) -> None:
    """Compile and run both forms, forward and backward, before anything is measured.

    Args:
        shapes: For each of `layer_norm`, `gelu` and `softmax` the input shapes to come.
        dtype: Type of inputs and parameters.
        device: Where the job runs.
    """
    operations: dict[str, Callable[..., torch.Tensor]] = {
        "layer_norm": layer_norm,
        "gelu": gelu,
        "softmax": softmax,
    }
    for name, wanted in shapes.items():
        for shape in wanted:
            inputs = [torch.ones(shape, dtype=dtype, device=device, requires_grad=True)]
            if name == "layer_norm":
                parameter = torch.ones(shape[-1:], dtype=dtype, device=device)
                inputs += [torch.nn.Parameter(parameter), torch.nn.Parameter(parameter.clone())]
            for fused in (True, False):
                operations[name](*inputs, fused=fused).sum().backward()


def _triton() -> Any:
    """Import Triton's half where it is used; it exists for Linux only."""
    from injectors.kernels import functions

    module: ModuleType = functions
    return module
