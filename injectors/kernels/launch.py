"""How a kernel is laid over a tensor: blocks of elements, rows or columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton

from injectors.kernels import triton_kernels

LARGEST_ROW = 65536
COLUMN_TILE = {"ROWS": 32, "COLUMNS": 64}


@dataclass(frozen=True)
class Layout:
    """How whole operations are laid over the device.

    Attributes:
        elements: Elements that a program of an elementwise kernel takes.
        strided: They lie as far apart as there are programs, so that a warp's accesses fall
            into as many memory sectors as it has threads, not into neighbouring ones.
        row_warps: Warps that share a row; a long row on one warp spills registers.
    """

    elements: int = 1024
    strided: bool = False
    row_warps: int = 4


LAYOUTS = (Layout(), Layout(elements=64, strided=True, row_warps=1))


def over_elements(
    kernel: Any, *tensors: torch.Tensor, scalars: tuple[float, ...] = (), **options: Any
) -> None:
    """Run an elementwise kernel; the last tensor is written."""
    size = tensors[-1].numel()
    options.setdefault("BLOCK", LAYOUTS[0].elements)
    kernel[(triton.cdiv(size, options["BLOCK"]),)](*tensors, size, *scalars, **options)


def over_rows(
    kernel: Any,
    matrix: torch.Tensor,
    *tensors: torch.Tensor,
    scalars: tuple[float, ...] = (),
    **options: Any,
) -> None:
    """Run a kernel with one program a row of `matrix`, its first argument."""
    rows, n = matrix.shape
    kernel[(rows,)](matrix, *tensors, n, *scalars, BLOCK=row_block(n), **options)


def column_sum(matrix: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the sum over the rows of `matrix`, added in float32."""
    rows, n = matrix.shape
    out = torch.empty(n, dtype=dtype, device=matrix.device)
    grid = (triton.cdiv(n, COLUMN_TILE["COLUMNS"]),)
    triton_kernels.column_sum[grid](matrix, out, rows, n, **COLUMN_TILE)
    return out


def row_block(n: int) -> int:
    """Return the power of two that holds a row of `n`; a row must fit one program.

    >>> row_block(5)
    8
    """
    if n > LARGEST_ROW:
        raise ValueError(f"a row must have at most {LARGEST_ROW} columns, got {n}")
    block: int = triton.next_power_of_2(n)
    return block


def float_like(x: torch.Tensor) -> torch.Tensor:
    """Return an empty float32 tensor of the same shape."""
    return torch.empty(x.shape, dtype=torch.float32, device=x.device)


def float_rows(x: torch.Tensor) -> torch.Tensor:
    """Return an empty float32 vector with one element a row of `x`."""
    return torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
