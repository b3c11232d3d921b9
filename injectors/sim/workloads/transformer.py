"""What all simulated transformers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from injectors.sim.builder import Builder
from injectors.sim.job import ONE, Job, Places
from injectors.sim.machine import Machine
from injectors.sim.program import Program
from injectors.sim.tape import Layer
from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.layers import Shape, transformer_layers
from injectors.sim.workloads.sharing import Sharing
from injectors.sim.workloads.training import TrainingStep

TOKEN_BYTES = 8  # of an index
STORED_TOKEN_BYTES = 4


class Transformer(SimulatedWorkload):
    """Sizes of a decoder-only transformer and of its batches.

    `accumulation` micro-batches of `micro_batch` sequences of `sequence` tokens make a step of
    each data-parallel rank. `compiled`: whole layers are compiled.
    """

    layers: PositiveInt = 12
    hidden: PositiveInt = 2048
    heads: PositiveInt = 16
    sequence: PositiveInt = 2048
    micro_batch: PositiveInt = 4
    accumulation: PositiveInt = 1
    vocabulary: PositiveInt = 32_000
    compiled: bool = True
    workers: NonNegativeInt = 4

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(
                f"hidden must be a multiple of heads, got {self.hidden} for {self.heads} heads"
            )
        return self

    def set_up(self, job: Job) -> None:
        """Set the loader of tokens, and whether layers are compiled."""
        tokens = self.micro_batch * self.sequence
        job.network.transport = self.transport
        job.framework.compiled_share_q16 = ONE if self.compiled else 0
        loader = job.loader
        loader.workers = self.workers
        loader.read_bytes = tokens * STORED_TOKEN_BYTES
        loader.requests = self.micro_batch
        loader.decode_ns = 2_000_000 + 400 * tokens

    def places(self, ranks: int, machine: Machine) -> Places:
        """Fill host after host; every split but that of the data is the workload's own."""
        ways = self.parallelism(ranks)
        return Places(ranks, min(ranks, machine.gpus_per_host), **ways)

    def tensors(self, samples: int) -> dict[str, int]:
        """Bytes of a micro-batch's tensors."""
        size = samples * self.sequence * TOKEN_BYTES
        return {"tokens": size, "targets": size}

    def shape(self, job: Job, samples: int) -> Shape:
        """Return the sizes of a micro-batch, with its padding."""
        return Shape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            vocabulary=self.vocabulary,
            samples=samples,
            sequence=max(1, self.sequence * job.framework.padded_q16 >> 16),
            tensor=job.places.tensor,
        )

    def share(self, builder: Builder, layers: Sequence[Layer]) -> Sharing:
        """Return how ranks share the model."""
        return Buckets(builder, layers)

    def compile(self, job: Job) -> Program:
        """Write the step."""
        builder = Builder(job)
        sharing = self.share(builder, self.layers_of(builder, self.micro_batch))
        step = TrainingStep(
            builder,
            lambda samples: self.layers_of(builder, samples),
            self.micro_batch,
            self.accumulation,
            self.tensors(self.micro_batch),
            sharing,
        )
        return step.write()

    def layers_of(self, builder: Builder, samples: int) -> list[Layer]:
        """Return the model for a number of samples."""
        return transformer_layers(builder.costs, self.shape(builder.job, samples))
