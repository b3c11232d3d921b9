"""A transformer whose feed-forward layers are many experts, spread over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from injectors.workloads.base import Context
from injectors.workloads.exchange import Exchange, Loads

if TYPE_CHECKING:
    from injectors.workloads.mixture_of_experts import MixtureOfExperts


class Mixture(nn.Module):
    """A router that picks one expert for each token, and this rank's share of the experts.

    Tokens travel to the rank of their expert and back. No token is dropped, however many
    choose the same expert. A bias on the scores may change the choice, but not the weights.
    """

    def __init__(
        self, parameters: MixtureOfExperts, context: Context, exchange: Exchange, loads: Loads
    ) -> None:
        super().__init__()
        self._context, self._exchange, self._loads = context, exchange, loads
        d, hidden, count = parameters.d_model, parameters.hidden, parameters.experts
        self.local = count // context.world_size
        self.router = nn.Linear(d, count, bias=False)
        # Every rank draws all of them alike and keeps its own.
        everywhere = [
            nn.Sequential(nn.Linear(d, hidden), nn.GELU(), nn.Linear(hidden, d))
            for _ in range(count)
        ]
        first = context.rank * self.local
        self.experts = nn.ModuleList(everywhere[first : first + self.local])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (tokens, d_model) to the same shape."""
        scores = self.router(x)
        chosen = (scores.detach() + self._bias(scores)).argmax(-1)
        order = chosen.argsort(stable=True)  # by expert, and so by rank
        sent = chosen.bincount(minlength=scores.shape[1]).view(-1, self.local)
        received = self._exchange.counts(sent)
        there, here = sent.sum(1).tolist(), received.sum(1).tolist()
        mine = self._exchange.rows(x[order], there, here)
        done = self._exchange.rows(self._compute(mine, received), here, there)
        weight = scores.softmax(-1).gather(1, chosen[:, None])
        return weight * done[order.argsort()]

    def _bias(self, scores: torch.Tensor) -> torch.Tensor:
        """What is added to the score of each expert before the choice, shape (experts,)."""
        bias = torch.zeros_like(scores[0])
        first = int(self._context.knobs["expert_bias_rank"]) * self.local
        bias[first : first + self.local] = self._context.knobs["expert_bias"]
        return bias

    def _compute(self, x: torch.Tensor, received: torch.Tensor) -> torch.Tensor:
        """Run the own experts; `received` (ranks, local experts) says whose rows stand where."""
        counts = received.sum(0).tolist()
        for number, count in enumerate(counts):
            self._loads.note(count, f"expert {self._context.rank * self.local + number}")
        expert = torch.arange(self.local, device=x.device).repeat(len(received))
        order = expert.repeat_interleave(received.flatten()).argsort(stable=True)
        parts = x[order].split(counts)
        done = torch.cat([own(part) for own, part in zip(self.experts, parts, strict=True)])
        return done[order.argsort()]


class MixtureBlock(nn.Module):
    """Pre-norm causal attention and a mixture of experts."""

    def __init__(self, parameters: MixtureOfExperts, mixture: Mixture) -> None:
        super().__init__()
        d = parameters.d_model
        self.heads = parameters.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mixture = mixture

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, sequence, d_model) to the same shape."""
        batch, length, d = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, d // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(d, dim=-1)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(x.shape))
        return x + self.mixture(self.norm2(x).flatten(0, 1)).view_as(x)


class MixtureTransformer(nn.Module):
    """Embedding, blocks and output layer of one rank."""

    def __init__(
        self, parameters: MixtureOfExperts, context: Context, exchange: Exchange, loads: Loads
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(parameters.vocabulary, parameters.d_model)
        self.blocks = nn.ModuleList(
            MixtureBlock(parameters, Mixture(parameters, context, exchange, loads))
            for _ in range(parameters.layers)
        )
        self.norm = nn.LayerNorm(parameters.d_model)
        self.head = nn.Linear(parameters.d_model, parameters.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (batch, sequence) to logits (batch, sequence, vocabulary)."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits
