"""A click model: embedding tables dealt out over the ranks, dense layers on every rank."""

from __future__ import annotations

from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Scalar
from injectors.sim.builder import Builder
from injectors.sim.job import Job, Places
from injectors.sim.machine import Machine
from injectors.sim.program import Program, Stream
from injectors.sim.tape import Layer
from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.blocks import Blocks
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.click_layers import click_loss, interaction, perceptron
from injectors.sim.workloads.embedding_tables import (
    INDEX_BYTES,
    LENGTH_BYTES,
    Tables,
    embeddings,
    gradient_swap,
    sparse,
)
from injectors.sim.workloads.training import TrainingStep

LAYERS = ("sparse", "embeddings", "bottom", "top")
DENSE_FEATURES, FLOAT_BYTES = 256, 4
LEAST_WIDTH = 16  # columns of a table that a rank holds at least
STORED_A_BYTE = 2  # indices, compressed
READ_BYTES = 2**20  # of a request to storage
DECODE_NS_AN_INDEX = 2


class Recommender(SimulatedWorkload):
    """Sizes of the tables, the dense layers and a rank's batch.

    `lookups` rows of each of `tables` are summed up for a sample; tables of a group are looked up
    together. They are dealt out over the ranks whole, or cut by columns where there are more
    ranks than tables. `workers` of the loader: 0 loads in the rank's own process.
    """

    title: ClassVar[str] = "Click prediction with sharded embedding tables, training"
    tables: PositiveInt = 128
    groups: PositiveInt = 4
    width: PositiveInt = 128
    lookups: PositiveInt = 16
    bottom: tuple[PositiveInt, ...] = (512, 256)
    top: tuple[PositiveInt, ...] = (2048, 2048, 1024, 512)
    micro_batch: PositiveInt = 8192
    accumulation: PositiveInt = 1
    workers: NonNegativeInt = 8

    def check_ranks(self, ranks: int) -> None:
        """Ask for tables that can be dealt out evenly."""
        shards = self.tables * max(1, self.width // LEAST_WIDTH)
        if shards % ranks:
            raise ValueError(
                f"ranks must divide the {shards} parts of at least {LEAST_WIDTH} columns that the"
                f" tables can be cut into, got {ranks}"
            )

    def set_up(self, job: Job) -> None:
        """Set the loader of samples; dense layers run eagerly."""
        job.framework.compiled_share_q16 = 0
        indices = self.tables * self.lookups * self.micro_batch
        loader = job.loader
        loader.workers = self.workers
        loader.worker_cores = max(1, job.machine.cores // job.machine.gpus_per_host)
        loader.read_bytes = indices // STORED_A_BYTE
        loader.requests = -(-loader.read_bytes // READ_BYTES)
        loader.request_ns = 50_000
        loader.decode_ns = indices * DECODE_NS_AN_INDEX

    def places(self, ranks: int, machine: Machine) -> Places:
        """Fill host after host."""
        self.check_ranks(ranks)
        return Places(ranks, min(ranks, machine.gpus_per_host), data=ranks)

    def config(self) -> dict[str, Scalar]:
        """Return the sizes, those of the dense layers as one text each."""
        layers = {"bottom": self.bottom, "top": self.top}
        texts = {name: "-".join(map(str, widths)) for name, widths in layers.items()}
        return {**super().config(), **texts}

    def compile(self, job: Job) -> Program:
        """Write the step."""
        builder = Builder(job)
        step = TrainingStep(
            builder,
            lambda samples: self.layers(builder, samples),
            self.micro_batch,
            self.accumulation,
            self.tensors(),
            TablesAndBuckets(builder, self.layers(builder, self.micro_batch)),
        )
        return step.write()

    def tensors(self) -> dict[str, int]:
        """Bytes of a micro-batch's tensors."""
        features = self.micro_batch * self.tables
        return {
            "dense": self.micro_batch * DENSE_FEATURES * FLOAT_BYTES,
            "indices": features * self.lookups * INDEX_BYTES,
            "lengths": features * LENGTH_BYTES,
            "clicks": self.micro_batch * FLOAT_BYTES,
        }

    def layers(self, builder: Builder, samples: int) -> list[Layer]:
        """Return the model for a number of samples, in the order of LAYERS."""
        framework = builder.job.framework
        blocks = Blocks(builder.costs, "eager" if framework.fused else "unfused")
        tables = Tables(self.tables, self.width, self.lookups, self.groups, samples)
        vectors = self.tables + 1
        pairs = vectors * (vectors - 1) // 2
        swap = gradient_swap(blocks, tables, framework.overlap)
        bottom = perceptron(blocks, samples, (DENSE_FEATURES, *self.bottom, self.width))
        top = (
            *interaction(blocks, samples, vectors, self.width, swap),
            *perceptron(blocks, samples, (pairs + self.width, *self.top, 1)),
            click_loss(blocks, samples),
        )
        return [
            sparse(blocks, tables),
            embeddings(blocks, tables, framework.overlap),
            Layer("bottom", bottom),
            Layer("top", top),
        ]


class TablesAndBuckets(Buckets):
    """Averages the dense gradients, and lets computation wait for rows where it needs them."""

    def before_forward(self, number: int) -> None:
        """The top needs the sums of rows."""
        super().before_forward(number)
        if LAYERS[number] == "top":
            self._wait_for("sums")

    def before_backward(self, number: int) -> None:
        """The tables need the gradients of these sums."""
        super().before_backward(number)
        if LAYERS[number] == "embeddings":
            self._wait_for("gradients")

    def _wait_for(self, name: str) -> None:
        if self.builder.size("world") > 1:
            self.builder.wait(f"wait_{name}", Stream.COMPUTE, Stream.EXPERT_PARALLEL)
