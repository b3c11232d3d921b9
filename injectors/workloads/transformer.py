"""The transformer itself; its elementwise chains run fused or op by op, chosen per layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from injectors import kernels

if TYPE_CHECKING:
    from injectors.workloads.language_model import LanguageModel


class Block(nn.Module):
    """Pre-norm attention and feed-forward block."""

    def __init__(self, parameters: LanguageModel) -> None:
        super().__init__()
        d = parameters.d_model
        self.heads, self.compiled = parameters.heads, parameters.compiled
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, together: bool) -> torch.Tensor:
        """Map (batch, sequence, d_model) to the same shape."""
        x = x + self.attention(self.norm(self.norm1, x, together), mask, together)
        return x + self.down(self.gelu(self.up(self.norm(self.norm2, x, together)), together))

    def attention(self, x: torch.Tensor, mask: torch.Tensor, together: bool) -> torch.Tensor:
        """Causal self-attention over all heads."""
        batch, length, d = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, d // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(d, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + mask
        weights = self.softmax(scores, together)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, d))

    def norm(self, layer: nn.LayerNorm, x: torch.Tensor, together: bool) -> torch.Tensor:
        """Layer norm, by the library or by our own kernels."""
        if not self.compiled:
            return layer(x)
        return kernels.layer_norm(x, layer.weight, layer.bias, layer.eps, fused=together)

    def gelu(self, x: torch.Tensor, together: bool) -> torch.Tensor:
        """GELU in its tanh form."""
        if not self.compiled:
            return functional.gelu(x, approximate="tanh")
        return kernels.gelu(x, fused=together)

    def softmax(self, x: torch.Tensor, together: bool) -> torch.Tensor:
        """Softmax over the last axis."""
        return kernels.softmax(x, fused=together) if self.compiled else x.softmax(-1)


class Transformer(nn.Module):
    """Embedding, blocks and output layer.

    `eager_layers` is asked at every step for how many layers, from the first, run their
    elementwise chains op by op.
    """

    def __init__(self, parameters: LanguageModel, eager_layers: Callable[[], int]) -> None:
        super().__init__()
        self.eager_layers = eager_layers
        self.tokens = nn.Embedding(parameters.vocabulary, parameters.d_model)
        self.positions = nn.Embedding(parameters.sequence_length, parameters.d_model)
        self.blocks = nn.ModuleList(Block(parameters) for _ in range(parameters.layers))
        self.norm = nn.LayerNorm(parameters.d_model)
        self.head = nn.Linear(parameters.d_model, parameters.vocabulary)
        length = parameters.sequence_length
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (batch, sequence) to logits (batch, sequence, vocabulary)."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        eager = self.eager_layers()
        for number, block in enumerate(self.blocks):
            x = block(x, self.mask, number >= eager)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits
