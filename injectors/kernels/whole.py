"""Each pass of an operation as one kernel (layer norm's backward: one and a column sum)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from injectors.kernels import triton_kernels as k
from injectors.kernels.launch import (
    Layout,
    column_sum,
    float_rows,
    over_elements,
    over_rows,
    row_block,
)

BACKWARD_PROGRAMS = 256  # each keeps one partial sum of the weight's gradient


@dataclass(frozen=True)
class Whole:
    """The passes, laid over the device in one way; results don't depend on it beyond rounding."""

    layout: Layout

    def layer_norm_forward(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (y, mean, reciprocal deviation) of the rows of `x`."""
        y, mean, rstd = torch.empty_like(x), float_rows(x), float_rows(x)
        warps = self.layout.row_warps
        over_rows(
            k.layer_norm_forward, x, weight, bias, y, mean, rstd, scalars=(eps,), num_warps=warps
        )
        return y, mean, rstd

    def layer_norm_backward(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
        dy: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of (x, weight, bias)."""
        rows, n = x.shape
        programs = min(rows, BACKWARD_PROGRAMS)
        dx = torch.empty_like(x)
        partial = torch.empty(2, programs, n, dtype=torch.float32, device=x.device)
        sums = (partial[0], partial[1])
        k.layer_norm_backward[(programs,)](
            *(x, weight, dy, mean, rstd, dx, *sums, rows, n),
            BLOCK=row_block(n),
            num_warps=self.layout.row_warps,
        )
        dweight, dbias = (column_sum(part, weight.dtype) for part in sums)
        return dx, dweight, dbias

    def gelu_forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return GELU(x) in its tanh form."""
        y = torch.empty_like(x)
        self._over_elements(k.gelu_forward, x, y)
        return y

    def gelu_backward(self, x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        """Return the gradient of x."""
        dx = torch.empty_like(x)
        self._over_elements(k.gelu_backward, x, dy, dx)
        return dx

    def softmax_forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax of each row."""
        y = torch.empty_like(x)
        over_rows(k.softmax_forward, x, y, num_warps=self.layout.row_warps)
        return y

    def softmax_backward(self, y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        """Return the gradient of x from the softmax's own result `y`."""
        dx = torch.empty_like(y)
        over_rows(k.softmax_backward, y, dy, dx, num_warps=self.layout.row_warps)
        return dx

    def _over_elements(self, kernel: object, *tensors: torch.Tensor) -> None:
        layout = self.layout
        over_elements(kernel, *tensors, BLOCK=layout.elements, STRIDED=layout.strided)
