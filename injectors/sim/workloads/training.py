"""The step of a training job: batches, forward, backward, update, checkpoint, and its marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from injectors.sim.builder import Builder
from injectors.sim.launches import Exchange
from injectors.sim.program import Program, Stream, Thread
from injectors.sim.tape import Layer, Tape
from injectors.sim.workloads.optimizer import adamw
from injectors.sim.workloads.sharing import Sharing

BATCH_HOST_NS = 120_000  # taking a batch from the queue of the workers
SPLIT_NS = 40_000  # cutting a batch into smaller ones
SCALAR_BYTES = 4
CHECKPOINT_PARTS = 4


def pieces(samples: int, split: int) -> list[int]:
    """Cut a micro-batch into `split` smaller ones, as far as it has samples.

    >>> pieces(8, 3), pieces(2, 4)
    ([3, 3, 2], [1, 1])
    """
    count = min(split, samples)
    return [samples // count + (i < samples % count) for i in range(count)]


def spread(count: int, places: int) -> list[int]:
    """Return how many of `count` things each of `places` gets, evenly.

    >>> spread(3, 2)
    [1, 2]
    """
    return [(i + 1) * count // places - i * count // places for i in range(places)]


class TrainingStep:
    """Writes a step of one model on all ranks.

    Args:
        builder: Where it is written.
        layers_of: Returns the model's layers for a number of samples.
        samples: Of a micro-batch; `accumulation` of them make a step.
        tensors: Bytes of a micro-batch's tensors by name.
        sharing: How ranks share the model.
    """

    def __init__(
        self,
        builder: Builder,
        layers_of: Callable[[int], Sequence[Layer]],
        samples: int,
        accumulation: int,
        tensors: dict[str, int],
        sharing: Sharing,
    ) -> None:
        self.builder, self.sharing, self.tensors = builder, sharing, tensors
        sizes = pieces(samples, builder.job.framework.micro_batch_split)
        self._pieces = sizes * accumulation
        self._cut = len(sizes)
        self._layers = {size: list(layers_of(size)) for size in set(sizes)}
        depth = len(self._layers[sizes[0]])
        self._read_backs = spread(builder.job.framework.read_backs, len(self._pieces) * depth)

    @property
    def layers(self) -> list[Layer]:
        """The model's layers, of the largest batch."""
        return self._layers[max(self._layers)]

    def write(self) -> Program:
        """Write the whole step."""
        builder = self.builder
        builder.mark("begin")
        builder.pause("respawn")
        for number in range(len(self._pieces)):
            self._micro_batch(number)
        self.sharing.settle()
        small_collectives(builder)
        adamw(builder, self.sharing.updated(self.layers), self.sharing.norm_group)
        self.after_update()
        builder.mark("optimizer")
        end_step(builder)
        return builder.program

    def after_update(self) -> None:
        """Write what follows the update of the parameters: nothing, unless a model says so."""

    def _micro_batch(self, number: int) -> None:
        builder, (batch, piece) = self.builder, divmod(number, self._cut)
        # The last piece has the path of a whole micro-batch: its gradients are those averaged.
        part = f"m{batch}" + (f".{piece}" if piece < self._cut - 1 else "")
        if not piece:
            with builder.under(f"m{batch}"):
                take_batch(builder, self.tensors)
        if not number:
            builder.mark("data")
            before_forward(builder)
        layers, tape = (
            self._layers[self._pieces[number]],
            Tape(builder, adds=number > 0 and self.sharing.adds),
        )
        self.sharing.begin(part, last=number == len(self._pieces) - 1)
        with builder.under(part):
            if self._cut > 1:
                builder.host("cut", SPLIT_NS, ("aten::split",))
            self._forward(number, layers, tape)
            builder.mark(f"forward/{number}")
            with backward_thread(builder):
                self._backward(layers, tape)
            self.sharing.finish()
        builder.mark(f"backward/{number}")

    def _forward(self, number: int, layers: Sequence[Layer], tape: Tape) -> None:
        builder, sharing = self.builder, self.sharing
        with builder.under("forward", sharing.span):
            for depth, layer in enumerate(layers):
                sharing.before_forward(depth)
                tape.forward(layer)
                sharing.after_forward(depth)
                for i in range(self._read_backs[number * len(layers) + depth]):
                    builder.read_back(f"{layer.name}/read_back{i}")
                if not number and depth == len(layers) // 2:
                    within_forward(builder)

    def _backward(self, layers: Sequence[Layer], tape: Tape) -> None:
        for depth in reversed(range(len(layers))):
            self.sharing.before_backward(depth)
            tape.backward(layers[depth], self.sharing.ready)
            self.sharing.after_backward(depth)


@contextmanager
def backward_thread(builder: Builder) -> Iterator[None]:
    """Append the backward half, which autograd's own thread launches."""
    with builder.under("backward"), builder.on(Thread.AUTOGRAD):
        yield


def take_batch(builder: Builder, tensors: dict[str, int]) -> None:
    """Write taking a batch from the loader and copying it to the device."""
    builder.next_batch(BATCH_HOST_NS)
    for name, size in tensors.items():
        builder.copy(f"copy/{name}", size, "HtoD", pinned=builder.job.loader.pinned)


def before_forward(builder: Builder) -> None:
    """Write what may hold the thread up at the beginning of a step's first forward."""
    for name in ("extra", "recompile", "autotune"):
        builder.pause(name)


def within_forward(builder: Builder) -> None:
    """Write what may hold the thread up in the middle of a step's first forward."""
    for name in ("gc", "suspend", "poll", "retry"):
        builder.pause(name)


def small_collectives(builder: Builder) -> None:
    """Write the scalar all-reduces that the job does beside those of its gradients."""
    for number in range(builder.job.framework.small_collectives):
        builder.exchange(
            Exchange(f"scalar/{number}", "all_reduce", SCALAR_BYTES, "world", Stream.DATA_PARALLEL)
        )


def end_step(builder: Builder) -> None:
    """Write the checkpoint, the reading of the loss that closes every step, and the logging."""
    saved = builder.job.checkpoint
    if saved.every:
        ranks, builder.ranks = builder.ranks, saved.ranks
        with builder.under("checkpoint"):
            for part in range(CHECKPOINT_PARTS):
                builder.copy(
                    f"copy{part}",
                    saved.bytes // CHECKPOINT_PARTS,
                    "DtoH",
                    work="checkpoint",
                )
            builder.sync("wait")
        builder.ranks = ranks
    builder.pause("checkpoint")
    builder.mark("checkpoint")
    builder.read_back("loss")
    builder.pause("metric")
    builder.mark("end")
