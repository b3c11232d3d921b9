"""A mixture-of-experts language model under expert and data parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from injectors.workloads.base import Context, Program, Workload
from injectors.workloads.sharded import ShardedProgram

if TYPE_CHECKING:
    import torch


class MixtureOfExperts(Workload):
    """Parameters of the model; `experts` must be a multiple of the ranks."""

    title: ClassVar[str] = "Mixture-of-experts language model, expert-parallel training"
    layers: PositiveInt = 1
    d_model: PositiveInt = 128
    hidden: PositiveInt = 1024
    heads: PositiveInt = 4
    experts: PositiveInt = 4
    sequence_length: PositiveInt = 64
    batch_size: PositiveInt = 4
    vocabulary: PositiveInt = 512

    def check_ranks(self, ranks: int) -> None:
        """Ask for as many experts on every rank."""
        if self.experts % ranks:
            raise ValueError(f"experts must be a multiple of ranks {ranks}, got {self.experts}")

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Experts are spread over the ranks; all the rest is data parallel."""
        return {"data": ranks, "expert": ranks}

    def build(self, context: Context) -> Program:
        """Make the model and optimizer of one rank."""
        return MixtureProgram(self, context)


class MixtureProgram(ShardedProgram):
    """The rank's model, its synthetic tokens and its optimizer."""

    def __init__(self, parameters: MixtureOfExperts, context: Context) -> None:
        import torch

        from injectors.workloads.experts import Mixture, MixtureTransformer

        super().__init__(context, "expert", "expert_tokens")
        self._parameters = parameters
        torch.manual_seed(context.seed)
        model = MixtureTransformer(parameters, context, self._exchange, self._loads)
        self.model = model.to(context.device)
        mixtures = [part for part in model.modules() if isinstance(part, Mixture)]
        self.keep_apart(parameter for part in mixtures for parameter in part.experts.parameters())
        # A rate so small that the router stays as it was drawn, which is near balance.
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
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
