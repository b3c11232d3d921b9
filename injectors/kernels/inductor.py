"""The same operations as plain PyTorch: op by op, or compiled by inductor into one loop.

Every function is written in the small ops that a model without fused kernels runs. Called as
it is, each op is one pass through memory; `compiled` gives the same function as one generated
C++ or Triton kernel a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

# One thread, so that compiling leaves no pool of workers beside the job; the generated
# kernels appear under their own names in a profile.
OPTIONS: dict[str, Any] = {"compile_threads": 1, "cpp.enable_kernel_profile": True}
NO_LIMIT = 1_000_000


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalise the last axis, then scale and shift."""
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    normal = centred * torch.rsqrt(variance + eps)
    return normal * weight + bias


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    inner = x + 0.044715 * (x * x * x)
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * inner))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax over the last axis."""
    power = torch.exp(x - x.amax(-1, keepdim=True).detach())
    return power / power.sum(-1, keepdim=True)


def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Add a bias of the last axis, then GELU: the middle of a transformer's MLP."""
    return gelu(x + bias)


def residual_layer_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Add the residual stream, then layer norm."""
    return layer_norm(x + residual, weight, bias, eps)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """Scale attention scores, add the mask (0 or -inf), then softmax."""
    return softmax(scores * scale + mask)


@cache
def compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return `function` compiled for exact shapes; compiling waits for the first call.

    A shape beyond the limit of graphs runs op by op, with a warning from torch.
    """
    result: Callable[..., torch.Tensor] = torch.compile(function, dynamic=False, options=OPTIONS)
    return result


def limit_graphs(count: int) -> None:
    """Let torch.compile make at most `count` graphs of a function in this process."""
    from torch._dynamo import config

    config.recompile_limit = count
    config.accumulated_recompile_limit = max(count, NO_LIMIT)


def call(function: Callable[..., torch.Tensor], *arguments: Any, fused: bool) -> torch.Tensor:
    """Call one of this module's functions, compiled or op by op."""
    return compiled(function)(*arguments) if fused else function(*arguments)
