"""Triton kernels for layer norm, GELU and softmax: whole operations, and single steps of them.

Tensors are contiguous; a matrix has `rows` rows of `n` columns. Row kernels run one program a
row, with `BLOCK` the next power of two that holds it. Everything is computed in float32.
Constants stand right of tensors: the interpreter multiplies wrongly the other way round.
"""
# mypy: disable-error-code="misc, untyped-decorator, no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

SQRT_2_OVER_PI = tl.constexpr(0.7978845608028654)
CUBIC = tl.constexpr(0.044715)


# Whole operations ------------------------------------------------------------------------


@triton.jit
def layer_norm_forward(x, weight, bias, y, mean, rstd, n, eps, BLOCK: tl.constexpr):  # noqa: N803
    """Normalise one row; keep its mean and reciprocal deviation for the backward pass."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mu = tl.sum(value, 0) / n
    centred = tl.where(inside, value - mu, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    result = centred * scale * w + b
    tl.store(y + row * n + at, result.to(y.dtype.element_ty), mask=inside)
    tl.store(mean + row, mu)
    tl.store(rstd + row, scale)


@triton.jit
def layer_norm_backward(
    x,
    weight,
    dy,
    mean,
    rstd,
    dx,
    dweight,
    dbias,
    rows,
    n,
    BLOCK: tl.constexpr,  # noqa: N803
):
    """Gradients of every `programs`-th row; partial sums for weight and bias, one a program."""
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    weight_sum = tl.zeros([BLOCK], dtype=tl.float32)
    bias_sum = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        value = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
        grad = tl.load(dy + row * n + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = tl.where(inside, (value - tl.load(mean + row)) * scale, 0.0)
        inner = grad * w
        mean_inner = tl.sum(inner, 0) / n
        mean_product = tl.sum(inner * normal, 0) / n
        result = (inner - mean_inner - normal * mean_product) * scale
        tl.store(dx + row * n + at, result.to(dx.dtype.element_ty), mask=inside)
        weight_sum += grad * normal
        bias_sum += grad
    tl.store(dweight + program * n + at, weight_sum, mask=inside)
    tl.store(dbias + program * n + at, bias_sum, mask=inside)


@triton.jit
def gelu_forward(x, y, size, BLOCK: tl.constexpr, STRIDED: tl.constexpr):  # noqa: N803
    """0.5 x (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)."""
    if STRIDED:
        at = tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)
    else:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    inner = value + value * value * value * CUBIC
    gate = 1.0 / (1.0 + tl.exp(inner * (-2.0 * SQRT_2_OVER_PI)))
    tl.store(y + at, (value * gate).to(y.dtype.element_ty), mask=inside)


@triton.jit
def gelu_backward(x, dy, dx, size, BLOCK: tl.constexpr, STRIDED: tl.constexpr):  # noqa: N803
    """With s = sigmoid(2u): dy (s + x s (1 - s) 2u')."""
    if STRIDED:
        at = tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)
    else:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    inner = value + value * value * value * CUBIC
    gate = 1.0 / (1.0 + tl.exp(inner * (-2.0 * SQRT_2_OVER_PI)))
    slope = (value * value * (3.0 * CUBIC) + 1.0) * (2.0 * SQRT_2_OVER_PI)
    result = grad * (gate + value * gate * (1.0 - gate) * slope)
    tl.store(dx + at, result.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def softmax_forward(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    """Softmax of one row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + row * n + at, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    result = power / tl.sum(power, 0)
    tl.store(y + row * n + at, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_backward(y, dy, dx, n, BLOCK: tl.constexpr):  # noqa: N803
    """y (dy - sum(y dy)) of one row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(y + row * n + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(dy + row * n + at, mask=inside, other=0.0).to(tl.float32)
    result = value * (grad - tl.sum(value * grad, 0))
    tl.store(dx + row * n + at, result.to(dx.dtype.element_ty), mask=inside)


# Single steps ----------------------------------------------------------------------------


@triton.jit
def row_sum(x, out, n, factor, BLOCK: tl.constexpr):  # noqa: N803
    """out[row] = factor * sum(x[row])."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + row, factor * tl.sum(value, 0))


@triton.jit
def row_max(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """out[row] = max(x[row])."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    tl.store(out + row, tl.max(value, 0))


@triton.jit
def row_add(x, each, out, n, factor, BLOCK: tl.constexpr):  # noqa: N803
    """out[row] = x[row] + factor * each[row]."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    result = value + factor * tl.load(each + row)
    tl.store(out + row * n + at, result.to(out.dtype.element_ty), mask=at < n)


@triton.jit
def row_multiply(x, each, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """out[row] = x[row] * each[row]."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    result = value * tl.load(each + row)
    tl.store(out + row * n + at, result.to(out.dtype.element_ty), mask=at < n)


@triton.jit
def row_divide(x, each, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """out[row] = x[row] / each[row]."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    result = value / tl.load(each + row)
    tl.store(out + row * n + at, result.to(out.dtype.element_ty), mask=at < n)


@triton.jit
def column_multiply(x, each, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """out[:, column] = x[:, column] * each[column]."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    factor = tl.load(each + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + row * n + at, (value * factor).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def column_add(x, each, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """out[:, column] = x[:, column] + each[column]."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    term = tl.load(each + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + row * n + at, (value + term).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def column_sum(x, out, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: N803
    """out[column] = sum(x[:, column]); a program takes `COLUMNS` columns, `ROWS` rows a turn."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < n)
        at = row[:, None] * n + column[None, :]
        total += tl.sum(tl.load(x + at, mask=inside, other=0.0).to(tl.float32), 0)
    tl.store(out + column, total.to(out.dtype.element_ty), mask=column < n)


@triton.jit
def reciprocal_root(x, out, size, eps, BLOCK: tl.constexpr):  # noqa: N803
    """out = 1 / sqrt(x + eps)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=1.0).to(tl.float32)
    tl.store(out + at, 1.0 / tl.sqrt(value + eps), mask=at < size)


@triton.jit
def multiply(a, b, out, size, BLOCK: tl.constexpr):  # noqa: N803
    """out = a * b."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(a + at, mask=at < size, other=0.0).to(tl.float32)
    right = tl.load(b + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out + at, (left * right).to(out.dtype.element_ty), mask=at < size)


@triton.jit
def add_scaled(a, b, out, size, factor, BLOCK: tl.constexpr):  # noqa: N803
    """out = a + factor * b."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(a + at, mask=at < size, other=0.0).to(tl.float32)
    right = tl.load(b + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out + at, (left + factor * right).to(out.dtype.element_ty), mask=at < size)


@triton.jit
def scale_shift(x, out, size, factor, term, BLOCK: tl.constexpr):  # noqa: N803
    """out = factor * x + term."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out + at, (factor * value + term).to(out.dtype.element_ty), mask=at < size)


@triton.jit
def sigmoid(x, out, size, BLOCK: tl.constexpr):  # noqa: N803
    """out = 1 / (1 + exp(-x))."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32)
    result = 1.0 / (1.0 + tl.exp(-value))
    tl.store(out + at, result.to(out.dtype.element_ty), mask=at < size)


@triton.jit
def exponential(x, out, size, BLOCK: tl.constexpr):  # noqa: N803
    """out = exp(x)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32)
    tl.store(out + at, tl.exp(value).to(out.dtype.element_ty), mask=at < size)
