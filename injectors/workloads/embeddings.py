"""A recommendation model: embeddings dealt out over the ranks, dense layers on every rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from injectors.workloads.base import Context
from injectors.workloads.exchange import Exchange, Loads

if TYPE_CHECKING:
    from injectors.workloads.recommendation import Recommendation

DENSE_FEATURES = 13


class ShardedEmbedding(nn.Module):
    """An embedding of which rank r holds the rows r, r + ranks, r + 2 ranks and so on."""

    def __init__(
        self, rows: int, width: int, context: Context, exchange: Exchange, loads: Loads
    ) -> None:
        super().__init__()
        self._ranks, self._exchange, self._loads = context.world_size, exchange, loads
        # Every rank draws the whole of it alike and keeps its own rows.
        whole = torch.randn(rows, width) / width**0.5
        self.weight = nn.Parameter(whole[context.rank :: self._ranks].clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Look up rows by number, shape (n,); returns (n, width)."""
        owner = ids % self._ranks
        order = owner.argsort(stable=True)
        sent = owner.bincount(minlength=self._ranks)
        there, here = sent.tolist(), self._exchange.counts(sent).tolist()
        self._loads.note(sum(here))
        wanted = self._exchange.swap(ids[order] // self._ranks, there, here)
        found = functional.embedding(wanted, self.weight, sparse=True)
        return self._exchange.rows(found, here, there)[order.argsort()]


class RecommendationModel(nn.Module):
    """Dense features, pooled embeddings of the categories, and their pairwise products."""

    def __init__(
        self, parameters: Recommendation, context: Context, exchange: Exchange, loads: Loads
    ) -> None:
        super().__init__()
        p = parameters
        self.embedding = ShardedEmbedding(p.tables * p.rows, p.width, context, exchange, loads)
        self.bottom = nn.Sequential(
            nn.Linear(DENSE_FEATURES, p.hidden), nn.ReLU(), nn.Linear(p.hidden, p.width)
        )
        pairs = (p.tables + 1) * p.tables // 2
        self.top = nn.Sequential(
            nn.Linear(p.width + pairs, p.hidden), nn.ReLU(), nn.Linear(p.hidden, 1)
        )
        self.register_buffer("pairs", torch.tril_indices(p.tables + 1, p.tables + 1, -1), False)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Map dense (batch, 13) and ids (batch, tables, look-ups) to logits (batch,)."""
        pooled = self.embedding(ids.flatten()).view(*ids.shape, -1).sum(2)
        base = self.bottom(dense)
        vectors = torch.cat([base[:, None], pooled], 1)
        products = vectors @ vectors.transpose(1, 2)
        found = products[:, self.pairs[0], self.pairs[1]]
        logits: torch.Tensor = self.top(torch.cat([base, found], 1)).squeeze(1)
        return logits
