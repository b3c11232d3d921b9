"""Training of a latent diffusion model: a U-Net under captions, data-parallel."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Scalar
from injectors.sim import kernels
from injectors.sim.builder import Builder
from injectors.sim.costs import Costs
from injectors.sim.job import ONE, Job, Places
from injectors.sim.launches import MORE_Q16
from injectors.sim.machine import Machine
from injectors.sim.program import Program
from injectors.sim.tape import Layer, Node
from injectors.sim.workloads.activations import gelu
from injectors.sim.workloads.attention import attention
from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.blocks import Blocks, form_of
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.norms import layer_norm
from injectors.sim.workloads.optimizer import groups_of
from injectors.sim.workloads.training import TrainingStep
from injectors.sim.workloads.unet import LATENT_CHANNELS, Sizes, UNet
from injectors.sim.workloads.unet_blocks import HEAD, Text

WORDS = 49_408  # of the captions' vocabulary
STATE_BYTES = 4  # of a weight that the optimizer and the average keep
LATENT_BYTES, TOKEN_BYTES = 4, 8  # as the loader gives them
STORED_BYTES = 2  # of a latent number on storage
DECODE_NS_A_SAMPLE = 1_500_000  # unpacking a sample's record, and its caption


class Diffusion(SimulatedWorkload):
    """Sizes of the U-Net, of the caption's frozen encoder and of a rank's batch.

    The loader reads latents of images that were encoded beforehand, `edge` x `edge`. `averaged`:
    a running average of the weights is kept. `workers` of the loader: 0 loads in the rank's own
    process.
    """

    title: ClassVar[str] = "Latent diffusion, U-Net, data-parallel training"
    channels: PositiveInt = 320
    levels: tuple[PositiveInt, ...] = (1, 2, 4)
    blocks: PositiveInt = 1
    edge: PositiveInt = 64
    text_layers: PositiveInt = 8
    text_width: PositiveInt = 768
    text_tokens: PositiveInt = 77
    micro_batch: PositiveInt = 16
    accumulation: PositiveInt = 1
    compiled: bool = False
    averaged: bool = True
    workers: NonNegativeInt = 4

    def set_up(self, job: Job) -> None:
        """Set the loader of latents, and whether blocks are compiled."""
        job.framework.compiled_share_q16 = ONE if self.compiled else 0
        loader = job.loader
        loader.workers = self.workers
        loader.worker_cores = max(1, job.machine.cores // job.machine.gpus_per_host)
        loader.read_bytes = self.micro_batch * (self._latents * STORED_BYTES + self.text_tokens * 8)
        loader.requests = self.micro_batch
        loader.decode_ns = self.micro_batch * DECODE_NS_A_SAMPLE

    @property
    def _latents(self) -> int:
        return LATENT_CHANNELS * self.edge * self.edge

    def places(self, ranks: int, machine: Machine) -> Places:
        """Fill host after host."""
        return Places(ranks, min(ranks, machine.gpus_per_host), data=ranks)

    def config(self) -> dict[str, Scalar]:
        """Return the sizes, `levels` as one text."""
        return {**super().config(), "levels": "-".join(map(str, self.levels))}

    def compile(self, job: Job) -> Program:
        """Write the step."""
        builder = Builder(job)
        step = DiffusionStep(
            builder,
            lambda samples: self.layers(builder.costs, samples),
            self.micro_batch,
            self.accumulation,
            self.tensors(),
            Buckets(builder, self.layers(builder.costs, self.micro_batch)),
        )
        step.averaged = self.averaged
        return step.write()

    def tensors(self) -> dict[str, int]:
        """Bytes of a micro-batch's tensors."""
        return {
            "latents": self.micro_batch * self._latents * LATENT_BYTES,
            "captions": self.micro_batch * self.text_tokens * TOKEN_BYTES,
        }

    def layers(self, costs: Costs, samples: int) -> list[Layer]:
        """Return the model for a number of samples."""
        text = Text(self.text_tokens, self.text_width)
        sizes = Sizes(self.channels, self.levels, self.blocks, self.edge, text)
        return [self._encoder(costs, samples), *UNet(costs, sizes, samples).layers()]

    def _encoder(self, costs: Costs, samples: int) -> Layer:
        """The captions' encoder, which is not trained: nothing of it goes backward."""
        framework = costs.framework
        form = form_of(0, 1, framework.compiled_share_q16, framework.fused)
        blocks = Blocks(costs, form)
        width, tokens = self.text_width, samples * self.text_tokens
        nodes = [blocks.gather("words", tokens, width, WORDS)]
        for number in range(self.text_layers):
            nodes += self._encoder_layer(blocks, f"layer{number}", samples, width)
        frozen = (replace(node, function="", backward=(), parameters=()) for node in nodes)
        return Layer("text", tuple(frozen), compiled=form == "compiled")

    def _encoder_layer(self, blocks: Blocks, part: str, samples: int, width: int) -> list[Node]:
        tokens, length = samples * self.text_tokens, self.text_tokens
        heads = max(1, width // HEAD)
        return [
            layer_norm(blocks, f"{part}.norm1", tokens, width, residual=True),
            blocks.linear(f"{part}.qkv", tokens, width, 3 * width),
            attention(blocks, f"{part}.attention", samples, length, heads, width),
            blocks.linear(f"{part}.projection", tokens, width, width),
            *blocks.residual(f"{part}.residual1", tokens * width),
            layer_norm(blocks, f"{part}.norm2", tokens, width, residual=True),
            blocks.linear(f"{part}.up", tokens, width, 4 * width),
            gelu(blocks, f"{part}.gelu", 4 * tokens * width),
            blocks.linear(f"{part}.down", tokens, 4 * width, width),
            *blocks.residual(f"{part}.residual2", tokens * width),
        ]


class DiffusionStep(TrainingStep):
    """A training step that keeps a running average of the weights."""

    averaged: bool = True

    def after_update(self) -> None:
        """Move the average towards the new weights."""
        if not self.averaged:
            return
        builder, make = self.builder, self.builder.launches
        kernel = kernels.multi_tensor("TernaryOpScalarFunctor<float, 2, 2, 0>", 2)
        with builder.under("average"):
            for number, elements in enumerate(groups_of(self.sharing.updated(self.layers), 2)):
                moved = 3 * elements * STATE_BYTES
                launch = make.named(f"lerp.{number}", kernel, moved, ("aten::_foreach_lerp_",))
                host_q16 = MORE_Q16 if number else ONE
                builder.launch(replace(launch, work="constant"), host_q16=host_q16)
