"""A small decoder-only transformer trained on random tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from injectors.workloads.base import Context, Program, Workload

if TYPE_CHECKING:
    import torch


class LanguageModel(Workload):
    """Parameters of the transformer; `compiled` fuses its elementwise chains."""

    title: ClassVar[str] = "Transformer language model, data-parallel training"
    layers: PositiveInt = 2
    d_model: PositiveInt = 128
    heads: PositiveInt = 4
    sequence_length: PositiveInt = 64
    batch_size: PositiveInt = 4
    vocabulary: PositiveInt = 512
    compiled: bool = False

    def build(self, context: Context) -> Program:
        """Make the model and optimizer of one rank."""
        return TransformerProgram(self, context)


class TransformerProgram(Program):
    """The rank's transformer, its synthetic tokens and its optimizer."""

    def __init__(self, parameters: LanguageModel, context: Context) -> None:
        import torch

        from injectors.workloads.transformer import Transformer

        self._parameters, self._context = parameters, context
        torch.manual_seed(context.seed)
        knobs = context.knobs
        self.model = Transformer(parameters, eager_layers=lambda: int(knobs["eager_layers"])).to(
            context.device
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.samples_per_step = parameters.batch_size * parameters.sequence_length
        self._generator = torch.Generator().manual_seed(context.seed * 1000 + context.rank)

    def next_batch(self) -> torch.Tensor:
        """Draw tokens, shape (batch, sequence + 1)."""
        import torch

        p = self._parameters
        size = (p.batch_size, p.sequence_length + 1)
        tokens = torch.randint(p.vocabulary, size, generator=self._generator)
        return tokens.to(self._context.device)

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the mean next-token cross entropy."""
        import torch

        logits = self.model(batch[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def cold_start(self) -> None:
        """Make the next step compile its code anew, as a job's first step does."""
        import torch

        torch._dynamo.reset()
