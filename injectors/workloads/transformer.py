"""The transformer itself; its elementwise chains run fused or op by op, chosen per layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from injectors import kernels
from injectors.recorder.knobs import Knobs

if TYPE_CHECKING:
    from injectors.workloads.language_model import LanguageModel


class Form(NamedTuple):
    """How a block computes what it computes.

    Attributes:
        fused: Elementwise chains run as one kernel, not op by op.
        version: Layout of the kernels on CUDA, see injectors.kernels.launch.
        stage: Where the curriculum stands; attention grows sharper by a millionth a stage.
    """

    fused: bool = True
    version: int = 0
    stage: int = 0


FUSED = Form()


class Block(nn.Module):
    """Pre-norm attention and feed-forward block."""

    def __init__(self, parameters: LanguageModel) -> None:
        super().__init__()
        d = parameters.d_model
        self.heads, self.compiled = parameters.heads, parameters.compiled
        self.library_attention = parameters.attention == "sdpa"
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, form: Form = FUSED) -> torch.Tensor:
        """Map (batch, sequence, d_model) to the same shape."""
        x = x + self.attention(self.norm(self.norm1, x, form), mask, form)
        return x + self.down(self.gelu(self.up(self.norm(self.norm2, x, form)), form))

    def attention(self, x: torch.Tensor, mask: torch.Tensor, form: Form) -> torch.Tensor:
        """Causal self-attention over all heads."""
        batch, length, d = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, d // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(d, dim=-1)
        )
        if self.library_attention:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(mixed.transpose(1, 2).reshape(batch, length, d))
        scale = (1 + 1e-6 * form.stage) / math.sqrt(d // self.heads)
        weights = self.softmax(q @ k.transpose(-1, -2) * scale + mask, form)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, d))

    def norm(self, layer: nn.LayerNorm, x: torch.Tensor, form: Form) -> torch.Tensor:
        """Layer norm, by the library or by our own kernels."""
        if not self.compiled:
            return layer(x)
        return kernels.layer_norm(
            x, layer.weight, layer.bias, layer.eps, fused=form.fused, version=form.version
        )

    def gelu(self, x: torch.Tensor, form: Form) -> torch.Tensor:
        """GELU in its tanh form."""
        if not self.compiled:
            return functional.gelu(x, approximate="tanh")
        return kernels.gelu(x, fused=form.fused, version=form.version)

    def softmax(self, x: torch.Tensor, form: Form) -> torch.Tensor:
        """Softmax over the last axis."""
        if not self.compiled:
            return x.softmax(-1)
        return kernels.softmax(x, fused=form.fused, version=form.version)


class Transformer(nn.Module):
    """Embedding, blocks and output layer.

    Knobs are asked at every step for how many layers, from the first, run their elementwise
    chains op by op, leave autocast, use the step-by-step path of attention or another version
    of the kernels, in how many pieces the batch is worked through, and when the curriculum
    moves on. Blocks compiled for exact shapes are compiled for the exact stage, too.
    """

    def __init__(self, parameters: LanguageModel, knobs: Knobs) -> None:
        super().__init__()
        self.knobs = knobs
        self.passes = 0
        self.run_block = block_runner(parameters.compile_blocks)
        self.tokens = nn.Embedding(parameters.vocabulary, parameters.d_model)
        self.positions = nn.Embedding(parameters.longest, parameters.d_model)
        self.blocks = nn.ModuleList(Block(parameters) for _ in range(parameters.layers))
        self.norm = nn.LayerNorm(parameters.d_model)
        self.head = nn.Linear(parameters.d_model, parameters.vocabulary)
        length = parameters.longest
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (batch, sequence) to logits (batch, sequence, vocabulary)."""
        pieces = int(self.knobs["pieces"])
        if pieces == 1:
            return self.logits(tokens)
        return torch.cat([self.logits(piece) for piece in tokens.chunk(pieces)])

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        """Do the same for a part of the batch."""
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions.weight[:length]
        mask = self.mask[:length, :length]
        stage = self.stage()
        for number, block in enumerate(self.blocks):
            with self.precision(number), self.attention_path(number):
                x = self.run_block(block, x, mask, self.form(number, stage))
        logits: torch.Tensor = self.head(self.norm(x))
        return logits

    def form(self, layer: int, stage: int) -> Form:
        """Return how a layer computes."""
        fused = layer >= int(self.knobs["eager_layers"])
        return Form(fused, int(layer < int(self.knobs["other_version_layers"])), stage)

    def stage(self) -> int:
        """Return where the curriculum stands; one that moves on never comes back to a stage."""
        self.passes += 1
        length = int(self.knobs["stage_steps"])
        return self.passes // length if length else 0

    def precision(self, layer: int) -> AbstractContextManager[None]:
        """Return the context in which a layer computes in the type of its parameters, or not."""
        if layer >= int(self.knobs["full_precision_layers"]):
            return nullcontext()
        kept: AbstractContextManager[None] = torch.autocast(self.mask.device.type, enabled=False)
        return kept

    def attention_path(self, layer: int) -> AbstractContextManager[None]:
        """Return the context in which a layer's library attention runs fused or step by step."""
        if layer >= int(self.knobs["math_layers"]):
            return nullcontext()
        chosen: AbstractContextManager[None] = sdpa_kernel(SDPBackend.MATH)
        return chosen


def block_runner(backend: str) -> Callable[[Block, torch.Tensor, torch.Tensor, Form], torch.Tensor]:
    """Return a function that runs a block, compiled for exact arguments unless `backend` is no."""
    if backend == "no":
        return run_block
    compiled: Callable[[Block, torch.Tensor, torch.Tensor, Form], torch.Tensor] = torch.compile(
        run_block, backend=backend, dynamic=False
    )
    return compiled


def run_block(block: Block, x: torch.Tensor, mask: torch.Tensor, form: Form) -> torch.Tensor:
    """Run one block."""
    result: torch.Tensor = block(x, mask, form)
    return result
