"""The real pipeline-parallel transformer as a simulated job on CPU cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from injectors.sim.builder import Builder
from injectors.sim.job import Job
from injectors.sim.program import Program
from injectors.sim.tape import Tape
from injectors.sim.workloads.cpu.operators import Operators, twin_of
from injectors.sim.workloads.cpu.step import (
    FULL_BATCH_NS,
    end_step,
    hold_up_before,
    hold_up_within,
    write_adamw,
)
from injectors.sim.workloads.cpu.transformer import Tokens, Transformer
from injectors.sim.workloads.schedule import Task, global_order
from injectors.workloads.pipeline import Pipeline, split


def compile_pipeline(job: Job, model: Pipeline) -> Program:
    """Write the step."""
    return PipelineStep(Builder(job), model).write()


class PipelineStep:
    """Writes the step stage by stage, in an order that lets every stage receive what was sent."""

    def __init__(self, builder: Builder, model: Pipeline) -> None:
        twin = twin_of(builder.job)
        self._builder, self._model, self._twin = builder, model, twin
        self._stages = builder.job.places.ranks
        self._operators = Operators(twin)
        tokens = Tokens(model.batch_size * model.sequence_length, model.sequence_length)
        first, *blocks, last = Transformer(model.whole(), self._operators).layers(tokens)
        moved = int(twin.settings.get("layers_moved", 0))
        shares = split(model.layers, self._stages, moved)
        self._layers = [[blocks[number] for number in share] for share in shares]
        self._layers[0].insert(0, first)
        self._layers[-1].append(last)
        self._bytes = 4 * tokens.count * model.d_model
        self._tapes: dict[tuple[int, int], Tape] = {}

    def write(self) -> Program:
        """Write the whole step."""
        builder = self._builder
        builder.mark("begin")
        builder.pause("respawn")
        builder.mark("data")
        hold_up_before(builder)
        for number, task in enumerate(global_order(self._stages, self._model.micro_batches)):
            with self._on(task.stage), builder.under(f"m{task.micro_batch}"):
                (self._forward if task.half == "forward" else self._backward)(task)
            if number == self._stages:
                hold_up_within(builder)
        for stage, layers in enumerate(self._layers):
            with self._on(stage), builder.under("optimizer"):
                write_adamw(builder, self._operators, [p for one in layers for p in one.parameters])
        builder.mark("optimizer")
        end_step(builder)
        return builder.program

    @contextmanager
    def _on(self, stage: int) -> Iterator[None]:
        self._builder.ranks = (stage,)
        with self._builder.under(f"s{stage}"):
            yield
        self._builder.ranks = None

    def _forward(self, task: Task) -> None:
        builder, number = self._builder, task.micro_batch
        tape = self._tapes[task.stage, number] = Tape(builder, adds=number > 0)
        with builder.under("forward"):
            builder.host("draw", FULL_BATCH_NS, ("aten::randint",))
            if task.stage:
                self._receive(task, task.stage - 1)
            for layer in self._layers[task.stage]:
                tape.forward(layer)
            if task.stage < self._stages - 1:
                builder.send("send", self._bytes, (task.stage + 1,))
        builder.mark(f"forward/{number}/s{task.stage}")

    def _backward(self, task: Task) -> None:
        builder, number = self._builder, task.micro_batch
        tape = self._tapes.pop((task.stage, number))
        with builder.under("backward"):
            if task.stage < self._stages - 1:
                self._receive(task, task.stage + 1)
            for layer in reversed(self._layers[task.stage]):
                tape.backward(layer)
            if task.stage:
                builder.send("send", self._bytes, (task.stage - 1,))
        builder.mark(f"backward/{number}/s{task.stage}")

    def _receive(self, task: Task, stage: int) -> None:
        pair = f"s{stage}/m{task.micro_batch}/{task.half}/send"
        self._builder.recv("recv", self._bytes, (stage,), pair)
