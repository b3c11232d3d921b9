"""Each pass of an operation as a chain of small kernels, with the results of whole.py.

Values between the kernels stay in float32, so that the chain costs time and memory traffic
and changes no result beyond rounding.
"""

from __future__ import annotations

from typing import Any

import torch

from injectors.kernels import triton_kernels as k
from injectors.kernels.launch import column_sum, float_like, float_rows, over_elements, over_rows

SQRT_2_OVER_PI = float(k.SQRT_2_OVER_PI.value)
CUBIC = float(k.CUBIC.value)


def layer_norm_forward(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (y, mean, reciprocal deviation) of the rows of `x`: 8 kernels."""
    mean = _row_sum(x, 1 / x.shape[1])
    centred = _row(k.row_add, x, mean, -1.0)
    variance = _row_sum(_pair(k.multiply, centred, centred), 1 / x.shape[1])
    rstd = torch.empty_like(variance)
    over_elements(k.reciprocal_root, variance, rstd, scalars=(eps,))
    scaled = _row(k.column_multiply, _row(k.row_multiply, centred, rstd), weight)
    y = torch.empty_like(x)
    over_rows(k.column_add, scaled, bias, y)
    return y, mean, rstd


def layer_norm_backward(
    x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of (x, weight, bias): 13 kernels."""
    per_column = 1 / x.shape[1]
    normal = _row(k.row_multiply, _row(k.row_add, x, mean, -1.0), rstd)
    dweight = column_sum(_pair(k.multiply, dy, normal), weight.dtype)
    dbias = column_sum(dy, weight.dtype)
    inner = _row(k.column_multiply, dy, weight)
    shifted = _row(k.row_add, inner, _row_sum(inner, per_column), -1.0)
    mean_product = _row_sum(_pair(k.multiply, inner, normal), per_column)
    along = _row(k.row_multiply, normal, mean_product)
    dx = torch.empty_like(x)
    over_rows(k.row_multiply, _pair(k.add_scaled, shifted, along, -1.0), rstd, dx)
    return dx, dweight, dbias


def gelu_forward(x: torch.Tensor) -> torch.Tensor:
    """Return GELU(x) in its tanh form: 6 kernels."""
    y = torch.empty_like(x)
    over_elements(k.multiply, x, _gate(x), y)
    return y


def gelu_backward(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x: 14 kernels."""
    gate = _gate(x)
    slope = _one(k.scale_shift, _pair(k.multiply, x, x), 3 * CUBIC, 1.0)
    slope = _one(k.scale_shift, slope, 2 * SQRT_2_OVER_PI, 0.0)
    fall = _pair(k.multiply, gate, _one(k.scale_shift, gate, -1.0, 1.0))
    rise = _pair(k.multiply, _pair(k.multiply, x, fall), slope)
    dx = torch.empty_like(x)
    over_elements(k.multiply, dy, _pair(k.add_scaled, gate, rise, 1.0), dx)
    return dx


def _gate(x: torch.Tensor) -> torch.Tensor:
    """Return sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)): 5 kernels."""
    cube = _pair(k.multiply, _pair(k.multiply, x, x), x)
    inner = _pair(k.add_scaled, x, cube, CUBIC)
    return _one(k.sigmoid, _one(k.scale_shift, inner, 2 * SQRT_2_OVER_PI, 0.0))


def softmax_forward(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row: 5 kernels."""
    highest = float_rows(x)
    over_rows(k.row_max, x, highest)
    power = _one(k.exponential, _row(k.row_add, x, highest, -1.0))
    y = torch.empty_like(x)
    over_rows(k.row_divide, power, _row_sum(power, 1.0), y)
    return y


def softmax_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x from the softmax's own result `y`: 4 kernels."""
    total = _row_sum(_pair(k.multiply, y, dy), 1.0)
    dx = torch.empty_like(y)
    over_elements(k.multiply, y, _row(k.row_add, dy, total, -1.0), dx)
    return dx


def _row_sum(x: torch.Tensor, factor: float) -> torch.Tensor:
    out = float_rows(x)
    over_rows(k.row_sum, x, out, scalars=(factor,))
    return out


def _row(kernel: Any, x: torch.Tensor, each: torch.Tensor, *scalars: float) -> torch.Tensor:
    out = float_like(x)
    over_rows(kernel, x, each, out, scalars=scalars)
    return out


def _pair(kernel: Any, a: torch.Tensor, b: torch.Tensor, *scalars: float) -> torch.Tensor:
    out = float_like(a)
    over_elements(kernel, a, b, out, scalars=scalars)
    return out


def _one(kernel: Any, x: torch.Tensor, *scalars: float) -> torch.Tensor:
    out = float_like(x)
    over_elements(kernel, x, out, scalars=scalars)
    return out
