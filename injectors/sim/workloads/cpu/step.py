"""The step of a training job on CPU cores: batches, forward, backward, update, chores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from injectors.sim.builder import Builder
from injectors.sim.job import ONE
from injectors.sim.launches import Launch
from injectors.sim.tape import Layer, Node, Parameter, Tape
from injectors.sim.workloads.cpu.averaging import GlooBuckets
from injectors.sim.workloads.cpu.operators import Operators
from injectors.sim.workloads.training import pieces

ANOMALY = "anomaly.tokens"  # row of work that is 0 in steps without autograd's anomaly mode
# Of a node here, for which autograd has 4.5 on average: keeping the Python stacks of all, 57 us
# each, and asking each for NaN, 88 us (measured alone, a Transformer with and without).
STACK_NS, LOOK_NS = 257_000, 330_000
PARAMETER_NS = 3_000  # of an update, for each parameter
LOOP_OPERATORS, LOOP_Q16 = 11, ONE // 8  # of an update that goes from parameter to parameter
ADAMW_BYTES = 28  # read and written for each parameter
FULL_BATCH_NS = 20_000  # cutting a batch up, or sampling one


class CpuStep:
    """Writes a step.

    Args:
        builder: Where it is written.
        operators: Of the job's precision.
        layers_of: Returns the model's layers for so many samples.
        samples: Of a micro-batch.
        micro_batches: Of a step.
    """

    def __init__(
        self,
        builder: Builder,
        operators: Operators,
        layers_of: Callable[[int], Sequence[Layer]],
        samples: int,
        micro_batches: int = 1,
    ) -> None:
        self.builder, self.operators, self._twin = builder, operators, operators.twin
        cut = pieces(samples, max(1, self._twin.number("pieces")))
        self._layers = [list(layers_of(size)) for size in cut]
        self._micro_batches = micro_batches
        whole = [*layers_of(samples)]
        self.parameters = [parameter for layer in whole for parameter in layer.parameters]
        every = self._twin.number("sync_every")
        self._sharing = GlooBuckets(
            builder,
            whole,
            "float64" if operators.precision == "float64" else "float32",
            self._twin.number("waited_buckets"),
            lambda number: bool(every) and number % every == every - 1,
        )

    def write(self) -> None:
        """Write the whole step."""
        builder = self.builder
        builder.mark("begin")
        builder.pause("respawn")
        for number in range(self._micro_batches):
            self._micro_batch(number)
        self.update()
        builder.mark("optimizer")
        end_step(builder)

    def take_batch(self) -> None:
        """Draw a synthetic batch."""
        self.builder.host("draw", FULL_BATCH_NS, ("aten::randint",))

    def _micro_batch(self, number: int) -> None:
        builder, part = self.builder, f"m{number}"
        with builder.under(part):
            self.take_batch()
        if not number:
            builder.mark("data")
            hold_up_before(builder)
        last = number == self._micro_batches - 1
        self._sharing.begin(part, last)
        with builder.under(part):
            self._halves(number, Tape(builder, adds=number > 0))
            self._sharing.finish()
        builder.mark(f"backward/{number}")

    def _halves(self, number: int, tape: Tape) -> None:
        """Write forward of all pieces of a batch, then backward of all, the last one first."""
        builder = self.builder
        with builder.under("forward", self._sharing.span):
            for count, layers in enumerate(self._layers):
                with builder.under(f"piece{count}"):
                    for layer in layers:
                        tape.forward(self._watched(layer, ahead=True))
            if not number:
                hold_up_within(builder)
        builder.mark(f"forward/{number}")
        with builder.under("backward"):
            for count, layers in reversed([*enumerate(self._layers)]):
                # Gradients are complete, and so averaged, when the first piece has had its turn.
                ready = self._sharing.ready if count == 0 else _nothing
                with builder.under(f"piece{count}"):
                    for layer in reversed(layers):
                        tape.backward(self._watched(layer, ahead=False), ready)

    def _watched(self, layer: Layer, ahead: bool) -> Layer:
        """Add what anomaly mode does: note stacks ahead, look for NaN on the way back."""
        if not self._twin.number("anomaly_every"):
            return layer
        add = self._noted if ahead else self._looked_at
        return replace(layer, nodes=tuple(add(node) for node in layer.nodes))

    def _noted(self, node: Node) -> Node:
        note = self._extra("stack", (), STACK_NS)
        return replace(node, forward=(*node.forward, note)) if node.backward else node

    def _looked_at(self, node: Node) -> Node:
        elements = sum(parameter.elements for parameter in node.parameters)
        elements += max(
            (s.label.dims[0][0] for s in node.forward if isinstance(s, Launch)), default=0
        )
        look = self.operators.pointwise("isnan", ("aten::isnan", "aten::any"), elements, "isnan")
        total = replace(look.cost, compute_ns=look.cost.compute_ns + LOOK_NS)
        look = replace(look, cost=total, work=ANOMALY, host_q16=0)
        return replace(node, backward=(*node.backward, look)) if node.backward else node

    def _extra(self, name: str, ops: tuple[str, ...], time_ns: int) -> Launch:
        """Host work of steps under anomaly mode alone."""
        made = self.operators.pointwise(name, ops, 0, "add")
        return replace(made, cost=replace(made.cost, compute_ns=time_ns), work=ANOMALY, host_q16=0)

    def update(self) -> None:
        """Write AdamW."""
        with self.builder.under("optimizer"):
            first = len(self.builder.program.ops)
            write_adamw(self.builder, self.operators, self.parameters)
            self.builder.span("Optimizer.step#AdamW.step", first)


def write_adamw(builder: Builder, make: Operators, parameters: Sequence[Parameter]) -> None:
    """Write AdamW as one operator over all parameters, or as a loop over them."""
    if make.twin.number("loop_optimizer"):
        for number, parameter in enumerate(parameters):
            for step in range(LOOP_OPERATORS):
                name, ops = f"adamw.{number}.{step}", ("aten::addcmul_",)
                launch = make.pointwise(name, ops, parameter.elements, "add")
                builder.launch(replace(launch, host_q16=LOOP_Q16))
        return
    total = sum(parameter.elements for parameter in parameters)
    builder.host("gather", PARAMETER_NS * len(parameters), ("aten::_foreach_add_",))
    builder.launch(make.stream("adamw", ("aten::_fused_adamw_",), ADAMW_BYTES * total))


def hold_up_before(builder: Builder) -> None:
    """Write what may hold the thread up at the beginning of a step's first forward."""
    for name in ("extra", "recompile", "autotune"):
        builder.pause(name)


def hold_up_within(builder: Builder) -> None:
    """Write what may hold the thread up in the middle of a step's first forward."""
    for name in ("gc", "suspend", "poll", "retry"):
        builder.pause(name)


def end_step(builder: Builder) -> None:
    """Write the chores between steps, and the marks."""
    builder.pause("checkpoint")
    builder.mark("checkpoint")
    builder.pause("metric")
    builder.host("loop", FULL_BATCH_NS)
    builder.mark("end")


def _nothing(parameters: Sequence[Parameter]) -> None:
    """Take no gradients."""
