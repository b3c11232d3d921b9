"""A click model whose embedding tables are sharded over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from injectors.workloads.base import Context, Program, Workload
from injectors.workloads.sharded import ShardedProgram

if TYPE_CHECKING:
    import torch


class Recommendation(Workload):
    """Parameters of the tables and the dense layers; `rows` is of one table, `lookups` in it.

    `rows` must be a multiple of the ranks.
    """

    title: ClassVar[str] = "Recommendation model with sharded embedding tables, training"
    tables: PositiveInt = 8
    rows: PositiveInt = 4096
    width: PositiveInt = 64
    lookups: PositiveInt = 32
    hidden: PositiveInt = 64
    batch_size: PositiveInt = 64

    def check_ranks(self, ranks: int) -> None:
        """Ask for as many rows on every rank."""
        if self.rows % ranks:
            raise ValueError(f"rows must be a multiple of ranks {ranks}, got {self.rows}")

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Embedding rows are dealt out over the ranks; the dense layers are data parallel."""
        return {"data": ranks, "embedding": ranks}

    def build(self, context: Context) -> Program:
        """Make the model and optimizer of one rank."""
        return RecommendationProgram(self, context)


class RecommendationProgram(ShardedProgram):
    """The rank's model, its synthetic clicks and its optimizer."""

    def __init__(self, parameters: Recommendation, context: Context) -> None:
        import torch

        from injectors.workloads.embeddings import RecommendationModel

        super().__init__(context, "embedding", "embedding_rows")
        self._parameters = parameters
        torch.manual_seed(context.seed)
        model = RecommendationModel(parameters, context, self._exchange, self._loads)
        self.model = model.to(context.device)
        self.keep_apart(model.embedding.parameters())
        torch.sparse.check_sparse_tensor_invariants.disable()  # or Adagrad warns of the default
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=1e-3)
        self.samples_per_step = parameters.batch_size
        self._generator = torch.Generator().manual_seed(context.seed * 1000 + context.rank)

    def next_batch(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw dense features, row numbers (batch, tables, look-ups) and clicks."""
        import torch

        from injectors.workloads.embeddings import DENSE_FEATURES

        batch, draw = self._parameters.batch_size, self._generator
        dense = torch.randn(batch, DENSE_FEATURES, generator=draw)
        clicks = torch.randint(2, (batch,), generator=draw).float()
        device = self._context.device
        return dense.to(device), self._ids(draw).to(device), clicks.to(device)

    def _ids(self, draw: torch.Generator) -> torch.Tensor:
        """Draw row numbers evenly; a share of them may be of one rank's rows alone."""
        import torch

        p, knobs, ranks = self._parameters, self._context.knobs, self._context.world_size
        size = (p.batch_size, p.tables, p.lookups)
        ids = torch.randint(p.rows, size, generator=draw)
        popular = torch.rand(size, generator=draw) < knobs["popular_lookups"]
        ids = torch.where(popular, ids - ids % ranks + int(knobs["popular_rank"]), ids)
        return ids + torch.arange(p.tables)[:, None] * p.rows

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the mean binary cross entropy of a batch of (dense, ids, clicks)."""
        import torch

        dense, ids, clicks = batch
        logits = self.model(dense, ids)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, clicks)
