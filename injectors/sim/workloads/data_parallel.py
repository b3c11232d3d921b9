"""A transformer trained by data parallelism: every rank holds all of it."""

from __future__ import annotations

from typing import ClassVar

from injectors.sim.builder import Builder
from injectors.sim.job import Job
from injectors.sim.program import Program
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.training import TrainingStep
from injectors.sim.workloads.transformer import Transformer


class DdpTransformer(Transformer):
    """DistributedDataParallel: gradients are averaged in buckets beside the backward."""

    title: ClassVar[str] = "Transformer language model, data-parallel training"

    def compile(self, job: Job) -> Program:
        """Write the step."""
        builder = Builder(job)
        sharing = Buckets(builder, self.layers_of(builder, self.micro_batch))
        step = TrainingStep(
            builder,
            lambda samples: self.layers_of(builder, samples),
            self.micro_batch,
            self.accumulation,
            self.tensors(self.micro_batch),
            sharing,
        )
        return step.write()
