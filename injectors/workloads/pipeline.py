"""A transformer split into pipeline stages, one a rank, trained by the 1F1B schedule."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PositiveInt

from injectors.recorder.clock import Laps
from injectors.workloads.base import Context, Program, Step, Workload
from injectors.workloads.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

    from injectors.recorder.communication import Communication

WAITING = ""


class Pipeline(Workload):
    """Parameters of the transformer and its micro-batches; every stage needs a layer."""

    title: ClassVar[str] = "Transformer language model, pipeline-parallel training"
    layers: PositiveInt = 8
    d_model: PositiveInt = 128
    heads: PositiveInt = 4
    sequence_length: PositiveInt = 64
    batch_size: PositiveInt = 2
    micro_batches: PositiveInt = 4
    vocabulary: PositiveInt = 256

    def check_ranks(self, ranks: int) -> None:
        """Ask for a layer on every stage."""
        split(self.layers, ranks, 0)

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Every rank is a stage."""
        return {"pipeline": ranks}

    def stage(self, rank: int, ranks: int) -> int | None:
        """Stages are numbered as the ranks."""
        return rank

    def whole(self) -> LanguageModel:
        """Return the parameters of the model that is split."""
        return LanguageModel(**self.model_dump(exclude={"micro_batches"}))

    def build(self, context: Context) -> Program:
        """Make the stage and optimizer of one rank."""
        return PipelineProgram(self, context)


def split(layers: int, stages: int, moved: int) -> list[range]:
    """Share layers out evenly, save that the last stage takes over `moved` from the others.

    Of layers that don't share out evenly the last stage gets fewer, since it has the logits.
    Raises ValueError where a stage would be left without any.

    >>> split(8, 2, 0), split(8, 2, 1)
    ([range(0, 4), range(4, 8)], [range(0, 3), range(3, 8)])
    """
    own = layers // stages
    others = layers - own - moved
    if not own or others < stages - 1:
        raise ValueError(
            f"each of {stages} stages must keep one of the {layers} layers, also with {moved}"
            " moved to the last"
        )
    bounds = [others * number // max(stages - 1, 1) for number in range(stages)]
    return [range(*ends) for ends in pairwise([*bounds, layers])]


class Computing(Laps):
    """The time of a step without the laps in which the stage waited."""

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name != WAITING)

    def __len__(self) -> int:
        return len([*self])


class PipelineProgram(Program):
    """One stage. Its phases are computing alone; waiting for neighbours is in `collectives`."""

    def __init__(self, parameters: Pipeline, context: Context) -> None:
        import torch

        from injectors.workloads.stages import Neighbours, Stage
        from injectors.workloads.transformer import Transformer

        p = parameters
        self._parameters, self._context = p, context
        rank, stages = context.rank, context.world_size
        self._first, self._last = rank == 0, rank == stages - 1
        torch.manual_seed(context.seed)  # every rank draws the whole model alike
        whole = Transformer(p.whole(), context.knobs)
        layers = split(p.layers, stages, int(context.settings["layers_moved"]))[rank]
        self.model = Stage(whole, layers, self._first, self._last).to(context.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        shape = (p.batch_size, p.sequence_length, p.d_model)
        self._neighbours = Neighbours(rank, stages, shape, context.device)
        self._warm_up = min(stages - rank - 1, p.micro_batches)
        self._communication: Communication | None = None
        self._generator = torch.Generator().manual_seed(context.seed * 1000)
        self._open: deque[tuple[torch.Tensor, torch.Tensor]] = deque()

    def connect(self, communication: Communication) -> None:
        """Join the neighbours."""
        self._communication = communication
        self._neighbours.join(communication)

    def step(self) -> Step:
        """Take all micro-batches through the stage, then step the optimizer."""
        import torch

        self._laps = Computing(self.clock)
        self._loss = torch.zeros((), device=self._context.device)
        self.optimizer.zero_grad(set_to_none=True)
        self._schedule()
        known = self._share_loss() or self._last
        self._laps.end(WAITING)
        self.optimizer.step()
        self._laps.end("optimizer_ns")
        if self._communication and self._context.knobs["step_barrier"]:
            self._communication.barrier()
        p = self._parameters
        tokens = p.micro_batches * p.batch_size * p.sequence_length
        return Step(self._laps.start, self._laps, self._loss if known else None, tokens)

    def _schedule(self) -> None:
        """One forward, one backward: a stage runs ahead by as many as there are stages after it.

        Source: PipeDream (SOSP 2019); without its stale weights, as in Megatron-LM (SC 2021).
        """
        stages = self._neighbours
        pairs = self._parameters.micro_batches - self._warm_up
        for _ in range(self._warm_up):
            output = self._forward(stages.swap(stages.previous, None, receive=True))
            stages.swap(stages.next, output, receive=False)
        arrived = stages.swap(stages.previous, None, receive=True) if pairs else None
        for left in reversed(range(pairs)):
            output = self._forward(arrived)
            gradient = self._backward(stages.swap(stages.next, output, receive=True))
            arrived = stages.swap(stages.previous, gradient, receive=left > 0)
        for _ in range(self._warm_up):
            gradient = self._backward(stages.swap(stages.next, None, receive=True))
            stages.swap(stages.previous, gradient, receive=False)

    def _forward(self, arrived: torch.Tensor | None) -> torch.Tensor:
        """Take a micro-batch forward; the last stage returns its share of the loss."""
        import torch

        self._laps.end(WAITING)
        inputs, targets = self._tokens()
        self._laps.end("data_wait_ns")
        entered = inputs if arrived is None else arrived.requires_grad_()
        left: torch.Tensor = self.model(entered)
        if self._last:
            left = torch.nn.functional.cross_entropy(left.flatten(0, 1), targets.flatten())
            left = left / self._parameters.micro_batches
            self._loss += left.detach()
        self._laps.end("forward_ns")
        self._open.append((entered, left))
        return left

    def _backward(self, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """Take the oldest open micro-batch backward; returns the gradient of what it got."""
        import torch

        self._laps.end(WAITING)
        entered, left = self._open.popleft()
        torch.autograd.backward(left, gradient)
        self._laps.end("backward_ns")
        return entered.grad

    def _tokens(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw inputs and targets, the same on every stage; the first and the last use them."""
        import torch

        p = self._parameters
        size = (p.batch_size, p.sequence_length + 1)
        tokens = torch.randint(p.vocabulary, size, generator=self._generator)
        tokens = tokens.to(self._context.device)
        return tokens[:, :-1], tokens[:, 1:]

    def _share_loss(self) -> bool:
        """Tell all stages the loss, where that is asked for; returns whether it was."""
        if self._communication is None or not self._context.knobs["loss_shared"]:
            return False
        self._communication.sum(self._loss)
        return True

    def state(self) -> Mapping[str, Any]:
        """Return the stage's parameters."""
        state: Mapping[str, Any] = self.model.state_dict()
        return state
