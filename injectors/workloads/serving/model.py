"""A decoder-only transformer that reads and writes its keys and values by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

# As in GPT-2: small embeddings, so that the layers decide about the next token.
EMBEDDING_STD = 0.02


@dataclass(frozen=True)
class Chunk:
    """Consecutive tokens of one sequence, from position `start` on, and its block table.

    Keys and values of all positions before `start` are in the blocks already.
    """

    tokens: Sequence[int]
    start: int
    blocks: Sequence[int]


@dataclass(frozen=True)
class Group:
    """Chunks of equal length, which attention treats together.

    Attributes:
        rows: Where their tokens are in the batch.
        tables: Block tables, shape (chunks, blocks), padded with block 0.
        mask: What each token may see, shape (chunks, 1, length, blocks * block size).
    """

    rows: slice
    tables: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True)
class Batch:
    """Tokens of many chunks behind each other, those of equal length together.

    Attributes:
        tokens: Shape (tokens,).
        positions: Position of each in its sequence.
        slots: Where its keys and values go: block * block size + offset.
        groups: How to attend.
        rows: First row of each chunk, in the order in which the chunks were given.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    groups: tuple[Group, ...]
    rows: tuple[int, ...]


def batch_of(chunks: Sequence[Chunk], block_size: int, device: torch.device | str) -> Batch:
    """Lay out chunks as one batch."""
    order = sorted(range(len(chunks)), key=lambda number: len(chunks[number].tokens))
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    rows = [0] * len(chunks)
    members: dict[int, list[Chunk]] = {}
    for number in order:
        chunk = chunks[number]
        rows[number] = len(tokens)
        tokens += chunk.tokens
        for position in range(chunk.start, chunk.start + len(chunk.tokens)):
            positions.append(position)
            block, offset = divmod(position, block_size)
            slots.append(chunk.blocks[block] * block_size + offset)
        members.setdefault(len(chunk.tokens), []).append(chunk)
    groups, begin = [], 0
    for length, alike in members.items():
        end = begin + length * len(alike)
        groups.append(_group(slice(begin, end), length, alike, block_size, device))
        begin = end
    flat = torch.tensor([tokens, positions, slots], device=device)
    return Batch(flat[0], flat[1], flat[2], tuple(groups), tuple(rows))


def _group(
    rows: slice, length: int, chunks: list[Chunk], size: int, device: torch.device | str
) -> Group:
    needed = [-(-(chunk.start + length) // size) for chunk in chunks]
    width = max(needed)
    tables = [
        [*chunk.blocks[:count], *([0] * (width - count))]
        for chunk, count in zip(chunks, needed, strict=True)
    ]
    starts = torch.tensor([chunk.start for chunk in chunks], device=device)
    positions = starts[:, None, None] + torch.arange(length, device=device)[None, :, None]
    mask = torch.arange(width * size, device=device) <= positions
    return Group(rows, torch.tensor(tables, device=device), mask[:, None])


class Layer(nn.Module):
    """Pre-norm attention over cached keys and values, and a feed-forward block."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Map (tokens, d_model) to the same shape; `memory` (2, blocks, size, d_model) is kept."""
        x = x + self.proj(self._attention(self.norm1(x), memory, batch))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    def _attention(self, x: torch.Tensor, memory: torch.Tensor, batch: Batch) -> torch.Tensor:
        query, key, value = self.qkv(x).split(x.shape[-1], dim=-1)
        slots = memory.flatten(1, 2)
        slots[0].index_copy_(0, batch.slots, key)
        slots[1].index_copy_(0, batch.slots, value)
        parts = [self._attend(query[group.rows], memory, group) for group in batch.groups]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _attend(self, query: torch.Tensor, memory: torch.Tensor, group: Group) -> torch.Tensor:
        """Attend from (chunks * length, d_model) to what the group's block tables name."""
        chunks, _, length, _ = group.mask.shape
        split = (chunks, -1, self.heads, query.shape[-1] // self.heads)
        table = group.tables.flatten()
        key, value = (part.index_select(0, table).view(split).transpose(1, 2) for part in memory)
        mixed = functional.scaled_dot_product_attention(
            query.view(split).transpose(1, 2), key, value, attn_mask=group.mask
        )
        return mixed.transpose(1, 2).reshape(chunks * length, -1)


class Decoder(nn.Module):
    """Embeddings, layers and output, with the memory of keys and values beside them."""

    def __init__(
        self, *, layers: int, d_model: int, heads: int, vocabulary: int, positions: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, d_model)
        self.positions = nn.Embedding(positions, d_model)
        nn.init.normal_(self.tokens.weight, std=EMBEDDING_STD)
        nn.init.normal_(self.positions.weight, std=EMBEDDING_STD)
        self.layers = nn.ModuleList(Layer(d_model, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary)

    def memory(self, blocks: int, block_size: int) -> torch.Tensor:
        """Return empty memory, shape (layers, 2, blocks, block size, d_model)."""
        weight = self.tokens.weight
        shape = (len(self.layers), 2, blocks, block_size, weight.shape[1])
        return torch.zeros(shape, dtype=weight.dtype, device=weight.device)

    def forward(
        self, batch: Batch, memory: torch.Tensor, rows: Sequence[int], depth: int | None = None
    ) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of some rows, after `depth` layers or all."""
        x = self.tokens(batch.tokens) + self.positions(batch.positions)
        for layer, part in zip(self.layers[:depth], memory, strict=False):
            x = layer(x, part, batch)
        index = torch.tensor(rows, dtype=torch.long, device=x.device)
        logits: torch.Tensor = self.head(self.norm(x[index]))
        return logits
