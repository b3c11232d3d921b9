"""A transformer cut into stages, which hand micro-batches on to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from pydantic import PositiveInt

from injectors.sim.builder import Builder
from injectors.sim.job import ONE, Job
from injectors.sim.program import Program
from injectors.sim.tape import Layer, Tape
from injectors.sim.workloads import optimizer
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.schedule import Task, global_order, split
from injectors.sim.workloads.training import (
    backward_thread,
    before_forward,
    end_step,
    pieces,
    small_collectives,
    spread,
    take_batch,
    within_forward,
)
from injectors.sim.workloads.transformer import Transformer


class PipelineTransformer(Transformer):
    """`pipeline` stages in the order of one forward, one backward, each on several replicas.

    The head counts as layers where they are shared out, so that the stages are even.
    """

    title: ClassVar[str] = "Transformer language model, pipeline-parallel training"
    layers: PositiveInt = 15
    hidden: PositiveInt = 2048
    heads: PositiveInt = 16
    micro_batch: PositiveInt = 2
    accumulation: PositiveInt = 8
    pipeline: PositiveInt = 4

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Pipelines of `pipeline` stages, data parallelism with what is left."""
        ways = min(self.pipeline, ranks)
        if ranks % ways or ways > self.layers:
            raise ValueError(
                f"ranks must be a multiple of pipeline and layers at least as many, got {ranks}"
                f" ranks and {self.layers} layers for {ways}"
            )
        return {"data": ranks // ways, "pipeline": ways}

    def stage(self, rank: int, ranks: int) -> int | None:
        """Return the stage of a rank."""
        return rank // self.parallelism(ranks)["data"]

    def split(self, stages: int, moved: int = 0) -> list[int]:
        """Layers of each stage, with `moved` more than planned on the last one."""
        head_q16 = self.vocabulary * ONE // (12 * self.hidden)
        return split(self.layers, stages, head_q16, moved)

    def compile(self, job: Job) -> Program:
        """Write the step."""
        return _PipelineStep(Builder(job), self).write()


class _PipelineStep:
    """Writes the step stage by stage, in an order that lets every stage receive what was sent."""

    def __init__(self, builder: Builder, workload: PipelineTransformer) -> None:
        job = builder.job
        self._builder, self._workload, self._places = builder, workload, job.places
        self._stages = job.places.pipeline
        sizes = pieces(workload.micro_batch, job.framework.micro_batch_split)
        self._samples = sizes * workload.accumulation
        self._layers = {size: self._cut(size) for size in set(sizes)}
        self._sharing = [self._share(stage) for stage in range(self._stages)]
        self._read_backs = spread(job.framework.read_backs, len(self._samples))
        self._tapes: dict[tuple[int, int], Tape] = {}

    def write(self) -> Program:
        builder = self._builder
        builder.mark("begin")
        builder.pause("respawn")
        tensors = self._workload.tensors(self._workload.micro_batch * self._workload.accumulation)
        with builder.under("batch"):
            take_batch(builder, tensors)
        builder.mark("data")
        before_forward(builder)
        self._tasks()
        small_collectives(builder)
        self._update()
        builder.mark("optimizer")
        end_step(builder)
        return builder.program

    def _cut(self, samples: int) -> list[list[Layer]]:
        """Return the layers of each stage."""
        builder, workload = self._builder, self._workload
        first, *layers, last = workload.layers_of(builder, samples)
        moved = builder.job.framework.last_stage_layers_q16 + ONE // 2 >> 16
        found: list[list[Layer]] = []
        for count in workload.split(self._stages, moved):
            found.append(layers[:count])
            layers = layers[count:]
        found[0].insert(0, first)
        found[-1].append(last)
        return found

    def _share(self, stage: int) -> Buckets:
        layers = self._layers[max(self._layers)][stage]
        return Buckets(self._builder, layers, (f"s{stage}",))

    @contextmanager
    def _on_stage(self, stage: int) -> Iterator[None]:
        before, self._builder.ranks = self._builder.ranks, self._ranks(stage)
        with self._builder.under(f"s{stage}"):
            yield
        self._builder.ranks = before

    def _ranks(self, stage: int) -> tuple[int, ...]:
        return tuple(self._places.ranks_of_stage(stage))

    def _tasks(self) -> None:
        """Write all halves of micro-batches; threads may stand still once all stages have begun."""
        begun: set[int] = set()
        for task in global_order(self._stages, len(self._samples)):
            with self._on_stage(task.stage), self._builder.under(f"m{task.micro_batch}"):
                (self._forward if task.half == "forward" else self._backward)(task)
            if task.stage not in begun:
                begun.add(task.stage)
                if len(begun) == self._stages:
                    within_forward(self._builder)

    def _forward(self, task: Task) -> None:
        builder, number = self._builder, task.micro_batch
        tape = self._tapes[task.stage, number] = Tape(builder)
        with builder.under("forward", Buckets.span):
            if task.stage:
                self._receive(task, task.stage - 1)
            for layer in self._stage_layers(task):
                tape.forward(layer)
            if task.stage < self._stages - 1:
                builder.send("send", self._bytes(number), self._ranks(task.stage + 1))
            for i in range(self._read_backs[number]):
                builder.read_back(f"read_back{i}")
        builder.mark(f"forward/{number}/s{task.stage}")

    def _backward(self, task: Task) -> None:
        builder, number = self._builder, task.micro_batch
        sharing, tape = self._sharing[task.stage], self._tapes.pop((task.stage, number))
        sharing.begin(f"m{number}", last=number == len(self._samples) - 1)
        if task.stage < self._stages - 1:
            with builder.under("backward"):
                self._receive(task, task.stage + 1)
        with backward_thread(builder):
            for layer in reversed(self._stage_layers(task)):
                tape.backward(layer, sharing.ready)
        sharing.finish()
        if task.stage:
            with builder.under("backward"):
                builder.send("send", self._bytes(number), self._ranks(task.stage - 1))
        builder.mark(f"backward/{number}/s{task.stage}")

    def _receive(self, task: Task, stage: int) -> None:
        """Receive from a neighbouring stage, of the same half of the same micro-batch."""
        pair = f"s{stage}/m{task.micro_batch}/{task.half}/send"
        self._builder.recv("recv", self._bytes(task.micro_batch), self._ranks(stage), pair)

    def _stage_layers(self, task: Task) -> Sequence[Layer]:
        return self._layers[self._samples[task.micro_batch]][task.stage]

    def _bytes(self, number: int) -> int:
        shape = self._workload.shape(self._builder.job, self._samples[number])
        return shape.tokens * shape.hidden * self._builder.costs.element_bytes

    def _update(self) -> None:
        parameters = [
            sharing.updated(layers)
            for sharing, layers in zip(self._sharing, self._layers[max(self._layers)], strict=True)
        ]
        for stage, own in enumerate(parameters):
            with self._on_stage(stage):
                optimizer.norm(self._builder, own)
        optimizer.sum_norm(self._builder, "world")
        for stage, own in enumerate(parameters):
            with self._on_stage(stage):
                optimizer.update(self._builder, own)
