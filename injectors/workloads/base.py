"""What every workload offers to the rank loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cases.schema import Record, Scalar
from injectors.recorder.clock import Clock, HostClock, Laps, Mark
from injectors.recorder.knobs import Knobs
from injectors.workloads.history import History

if TYPE_CHECKING:
    import torch
    from torch import nn

    from injectors.recorder.communication import Communication


@dataclass(frozen=True)
class Context:
    """Where one rank runs: its place in the job, device, settings and scratch folder.

    Attributes:
        knobs: Settings that can change while the job runs.
        worker_cores: CPUs for its helper processes; empty: they inherit the rank's.
        settings: What was fixed when the job started (see Injection.settings), by name.
    """

    rank: int
    world_size: int
    seed: int
    device: torch.device
    knobs: Knobs
    folder: Path
    worker_cores: frozenset[int] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)


class Workload(Record, ABC):
    """Parameters of a workload; `build` makes the program of one rank."""

    title: ClassVar[str]
    kind: ClassVar[Literal["training", "inference"]] = "training"

    @property
    def settle_steps(self) -> int:
        """Steps until a change of condition is fully felt."""
        return 2

    @abstractmethod
    def build(self, context: Context) -> Program:
        """Make the rank's model, data and optimizer."""

    def prepare(self, folder: Path, seed: int) -> None:
        """Write the files that the job reads, once, before its ranks start."""

    def config(self) -> dict[str, Scalar]:
        """Return the job's own configuration, the same keys in every case of a workload."""
        return self.model_dump(mode="python")

    def check_ranks(self, ranks: int) -> None:
        """Raise ValueError where the job can't be split over so many ranks."""

    def stage(self, rank: int, ranks: int) -> int | None:
        """Return the pipeline stage of a rank, None where there is no pipeline."""
        return None

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Return how many ways each kind of parallelism splits the ranks."""
        return {"data": ranks}


@dataclass(frozen=True)
class Step:
    """What one step took: its start and phases in ns (monotonic), and its loss where it has one.

    `phases` holds columns of the table `steps`. The start may be a mark of the program's clock,
    and phases may be read from such marks (`Laps`); nobody looks at them while steps run.
    """

    start_ns: Mark
    phases: Mapping[str, int]
    loss: torch.Tensor | None
    tokens: int


class Program(ABC):
    """One rank's program; the rank loop asks it for step after step.

    Attributes:
        clock: Times the phases of a step; the rank loop gives the one that fits the device.
    """

    clock: Clock = HostClock()

    @abstractmethod
    def step(self) -> Step:
        """Do one step."""

    def connect(self, communication: Communication) -> None:  # noqa: B027 (it may need nobody)
        """Join the other ranks; called once, only where there is more than one."""

    def cold_start(self) -> None:  # noqa: B027 (many programs have nothing to start again)
        """Drop what the first step of a job has to set up."""

    def tables(self, start_ns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
        """Return and forget the rows of tables of its own for the `steps` steps recorded.

        Times are ns after `start_ns` (monotonic). Rows before the recording are dropped by a
        call whose answer nobody reads.
        """
        return {}

    def state(self) -> Mapping[str, Any]:
        """Return what a checkpoint holds."""
        return {}

    def close(self) -> None:  # noqa: B027 (most programs own no processes)
        """End helper processes."""


class TrainingProgram(Program):
    """A training step in the phases that are timed apart, over one or more micro-batches."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    samples_per_step: int
    micro_batches: int = 1

    def __init__(self, context: Context) -> None:
        self._context = context
        self._history = History(context.knobs, context.rank)
        self._steps = 0

    @abstractmethod
    def next_batch(self) -> Any:
        """Return the next micro-batch on the device."""

    @abstractmethod
    def forward(self, batch: Any) -> torch.Tensor:
        """Return the loss of a micro-batch."""

    def connect(self, communication: Communication) -> None:
        """Average gradients over all ranks."""
        self.model = communication.data_parallel(self.model)

    def accumulate(self, number: int) -> AbstractContextManager[None]:
        """Return the context of a micro-batch; gradients are averaged at least in the last one."""
        no_sync = getattr(self.model, "no_sync", None)
        every = int(self._context.knobs["sync_every"])
        averaged = number == self.micro_batches - 1 or (every and number % every == every - 1)
        return nullcontext() if averaged or no_sync is None else no_sync()

    def checked(self) -> AbstractContextManager[None]:
        """Return the context of a step, in which autograd may look for anomalies."""
        import torch

        every = int(self._context.knobs["anomaly_every"])
        self._steps += 1
        look = bool(every) and self._steps % every == 0
        context: AbstractContextManager[None] = torch.autograd.set_detect_anomaly(look)
        return context

    def update(self) -> None:
        """Read back values of gradients where asked to, and step the optimizer."""
        count = int(self._context.knobs["read_backs"])
        for parameter in [*self.model.parameters()][:count] if count else ():
            parameter.grad.reshape(-1)[0].item()
        self.optimizer.step()

    def step(self) -> Step:
        """Do one step under the checks that are on."""
        with self.checked():
            return self._step()

    def _step(self) -> Step:
        """Fetch, forward and backward every micro-batch, then update the parameters."""
        laps = Laps(self.clock)
        for number in range(self.micro_batches):
            batch = self.next_batch()
            laps.end("data_wait_ns")
            self._history.note()
            if not number:
                self.optimizer.zero_grad(set_to_none=True)
            with self.accumulate(number):
                loss = self.forward(batch)
                laps.end("forward_ns")
                loss.backward()
                laps.end("backward_ns")
        self.update()
        laps.end("optimizer_ns")
        return Step(laps.start, laps, loss, self.samples_per_step)

    def state(self) -> Mapping[str, Any]:
        """Return the model's parameters and buffers."""
        state: Mapping[str, Any] = self.model.state_dict()
        return state
