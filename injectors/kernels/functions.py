"""Layer norm, GELU and softmax for autograd, by one kernel a pass or by a chain of them."""
# mypy: disable-error-code="misc, untyped-decorator"

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from injectors.kernels import steps
from injectors.kernels.launch import LAYOUTS
from injectors.kernels.whole import Whole


class LayerNorm(torch.autograd.Function):
    """Layer norm over the last axis with weight and bias."""

    @staticmethod
    def forward(  # noqa: D102 - autograd's own protocol
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
        fused: bool,
        version: int,
    ) -> torch.Tensor:
        ctx.passes = _passes(fused, version)
        matrix = _matrix(x)
        weight, bias = weight.contiguous(), bias.contiguous()
        y, mean, rstd = ctx.passes.layer_norm_forward(matrix, weight, bias, eps)
        ctx.save_for_backward(matrix, weight, mean, rstd)
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: D102
        dx, dweight, dbias = ctx.passes.layer_norm_backward(*ctx.saved_tensors, _matrix(dy))
        return dx.view(dy.shape), dweight, dbias, None, None, None


class Gelu(torch.autograd.Function):
    """GELU in its tanh form."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fused: bool, version: int) -> torch.Tensor:  # noqa: D102
        ctx.passes = _passes(fused, version)
        x = x.contiguous()
        ctx.save_for_backward(x)
        return ctx.passes.gelu_forward(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: D102
        (x,) = ctx.saved_tensors
        return ctx.passes.gelu_backward(x, dy.contiguous()), None, None


class Softmax(torch.autograd.Function):
    """Softmax over the last axis."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fused: bool, version: int) -> torch.Tensor:  # noqa: D102
        ctx.passes = _passes(fused, version)
        y = ctx.passes.softmax_forward(_matrix(x))
        ctx.save_for_backward(y)
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: D102
        (y,) = ctx.saved_tensors
        return ctx.passes.softmax_backward(y, _matrix(dy)).view(dy.shape), None, None


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
    fused: bool,
    version: int = 0,
) -> torch.Tensor:
    """Normalise the last axis of `x` (..., n), then scale and shift by weight and bias (n,)."""
    return LayerNorm.apply(x, weight, bias, eps, fused, version)


def gelu(x: torch.Tensor, fused: bool, version: int = 0) -> torch.Tensor:
    """Return 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), any shape."""
    return Gelu.apply(x, fused, version)


def softmax(x: torch.Tensor, fused: bool, version: int = 0) -> torch.Tensor:
    """Return the softmax over the last axis of `x` (..., n)."""
    return Softmax.apply(x, fused, version)


def _passes(fused: bool, version: int) -> ModuleType | Whole:
    return Whole(LAYOUTS[version]) if fused else steps


def _matrix(x: torch.Tensor) -> torch.Tensor:
    """Return `x` (..., n) as a contiguous matrix (rows, n)."""
    return x.contiguous().view(-1, x.shape[-1])
