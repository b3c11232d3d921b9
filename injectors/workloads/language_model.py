"""A small decoder-only transformer trained on random tokens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import PositiveInt, model_validator

from cases.schema import Scalar
from injectors.workloads.base import Context, Program, TrainingProgram, Workload

if TYPE_CHECKING:
    import torch

IGNORED = -100  # target of a padded position, which cross entropy leaves out


class LanguageModel(Workload):
    """Parameters of the transformer and of its batches.

    `compiled` fuses its elementwise chains. `precision` bfloat16 computes under autocast, with
    parameters in float32. `attention` sdpa is PyTorch's fused one. `max_length` is the longest
    sequence that the model can take, `sequence_length` where it is not given. With
    `mixed_lengths` micro-batches of equally many tokens hold sequences of `sequence_length`,
    twice as many tokens, and so on up to `max_length` in turn, the same on all ranks.
    `compile_blocks` names the backend of torch.compile that whole blocks are compiled by.
    """

    title: ClassVar[str] = "Transformer language model, data-parallel training"
    layers: PositiveInt = 2
    d_model: PositiveInt = 128
    heads: PositiveInt = 4
    sequence_length: PositiveInt = 64
    batch_size: PositiveInt = 4
    vocabulary: PositiveInt = 512
    compiled: bool = False
    micro_batches: PositiveInt = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    attention: Literal["manual", "sdpa"] = "manual"
    max_length: PositiveInt | None = None
    mixed_lengths: bool = False
    compile_blocks: Literal["no", "eager", "aot_eager", "inductor"] = "no"

    @model_validator(mode="after")
    def _lengths_fit(self) -> LanguageModel:
        if self.longest < self.sequence_length:
            raise ValueError(
                f"max_length must be at least sequence_length, got {self.longest} for"
                f" {self.sequence_length}"
            )
        if self.batch_size * self.sequence_length % self.lengths[-1]:
            raise ValueError(
                f"batch_size * sequence_length must be a multiple of {self.lengths[-1]}, the"
                f" longest of the mixed lengths, got {self.batch_size * self.sequence_length}"
            )
        return self

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence that the model can take."""
        return self.max_length or self.sequence_length

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of the sequences of successive micro-batches, in turn.

        >>> LanguageModel(sequence_length=32, max_length=128, mixed_lengths=True).lengths
        (32, 64, 128)
        """
        found = [self.sequence_length]
        while self.mixed_lengths and 2 * found[-1] <= self.longest:
            found.append(2 * found[-1])
        return tuple(found)

    def config(self) -> dict[str, Scalar]:
        """Return the configuration with the length that `max_length` comes to."""
        return {**super().config(), "max_length": self.longest}

    def build(self, context: Context) -> Program:
        """Make the model and optimizer of one rank."""
        return TransformerProgram(self, context)


class TransformerProgram(TrainingProgram):
    """The rank's transformer, its synthetic tokens and its optimizer."""

    def __init__(self, parameters: LanguageModel, context: Context) -> None:
        import torch

        from injectors.kernels.inductor import NO_LIMIT, limit_graphs
        from injectors.workloads.transformer import Transformer

        super().__init__(context)
        self._parameters = parameters
        if parameters.compiled or parameters.compile_blocks != "no":
            limit_graphs(context.settings.get("recompile_limit", NO_LIMIT))
        torch.manual_seed(context.seed)
        element_type = getattr(torch, context.settings.get("element_type", "float32"))
        self.model = Transformer(parameters, context.knobs).to(context.device, element_type)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.micro_batches = parameters.micro_batches
        self._generator = torch.Generator().manual_seed(context.seed * 1000 + context.rank)
        self._batches = 0
        self._rows: list[dict[str, Any]] = []

    def next_batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw tokens; returns inputs and targets, both of shape (batch, padded sequence)."""
        import torch

        p, knobs = self._parameters, self._context.knobs
        turn = self._batches + int(knobs["length_shift"]) * self._context.rank
        length = p.lengths[turn % len(p.lengths)]
        rows = p.batch_size * p.sequence_length // length
        tokens = torch.randint(p.vocabulary, (rows, length + 1), generator=self._generator)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        padding = min(int(knobs["padded_length"]), p.longest) - length
        if padding > 0:
            inputs = torch.nn.functional.pad(inputs, (0, padding))
            targets = torch.nn.functional.pad(targets, (0, padding), value=IGNORED)
        self.samples_per_step = self.micro_batches * inputs.numel()
        self._note_lengths(rows, length)
        self._batches += 1
        return inputs.to(self._context.device), targets.to(self._context.device)

    def _note_lengths(self, rows: int, length: int) -> None:
        """Keep what a micro-batch's sequences add up to, padding left out, with the time."""
        now = time.monotonic_ns()
        for detail, value in (("sum", rows * length), ("sum of squares", rows * length**2)):
            self._rows.append({"time_ns": now, "value": float(value), "detail": detail})

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the mean next-token cross entropy."""
        import torch

        inputs, targets = batch
        narrow = self._parameters.precision == "bfloat16"
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=narrow):
            logits = self.model(inputs)
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def update(self) -> None:
        """Step the optimizer, fused or parameter by parameter."""
        loop = bool(self._context.knobs["loop_optimizer"])
        for group in self.optimizer.param_groups:
            group["fused"], group["foreach"] = not loop, False
        super().update()

    def tables(self, start_ns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
        """Return and forget the lengths of the micro-batches of the `steps` steps recorded."""
        kept, self._rows = self._rows[: 2 * steps * self.micro_batches], []
        common = {"rank": self._context.rank, "event": "sequence_lengths", "duration_ns": None}
        return {
            "runtime": [{**common, **row, "time_ns": row["time_ns"] - start_ns} for row in kept]
        }

    def cold_start(self) -> None:
        """Make the next step compile its code anew, as a job's first step does."""
        import torch

        torch._dynamo.reset()
