"""A residual convolution network on images that a loader decodes, data-parallel."""

from __future__ import annotations

from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from cases.schema import Scalar
from injectors.sim.builder import Builder
from injectors.sim.costs import Costs
from injectors.sim.job import ONE, Job, Places
from injectors.sim.machine import Machine
from injectors.sim.program import Program
from injectors.sim.tape import Layer, Node
from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.blocks import Blocks, form_of
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.convolution import Images, convolution
from injectors.sim.workloads.image_blocks import activation, add, mean, pool
from injectors.sim.workloads.image_norms import batch_norm
from injectors.sim.workloads.training import TrainingStep

EXPANSION = 4  # channels that a block ends with over those of its 3 x 3 convolution
LABEL_BYTES, PIXEL_BYTES = 8, 4  # of a class number; of a channel of a pixel as the loader gives it
JPEG_BYTES = 40_000  # an image resized for training beforehand
DECODE_NS_A_PIXEL = 22  # decoding, a random crop, a flip, scaling to floats
SHARD_READS = 8  # of a batch, from files that hold many images


class Vision(SimulatedWorkload):
    """Sizes of a residual network with bottleneck blocks, of its images and of the loader.

    `blocks` of each stage; channels double and edges halve from stage to stage. `workers` of the
    loader: 0 loads in the rank's own process.
    """

    title: ClassVar[str] = "Image classification, residual network, data-parallel training"
    blocks: tuple[PositiveInt, ...] = (3, 4, 6, 3)
    channels: PositiveInt = 64
    pixels: PositiveInt = 224
    classes: PositiveInt = 1000
    micro_batch: PositiveInt = 96
    accumulation: PositiveInt = 1
    compiled: bool = False
    workers: NonNegativeInt = 10

    def set_up(self, job: Job) -> None:
        """Set the loader of images, and whether blocks are compiled."""
        job.framework.compiled_share_q16 = ONE if self.compiled else 0
        loader = job.loader
        loader.workers = self.workers
        loader.worker_cores = max(1, job.machine.cores // job.machine.gpus_per_host)
        loader.read_bytes = self.micro_batch * JPEG_BYTES
        loader.requests = SHARD_READS
        loader.decode_ns = self.micro_batch * self.pixels * self.pixels * DECODE_NS_A_PIXEL

    def places(self, ranks: int, machine: Machine) -> Places:
        """Fill host after host."""
        return Places(ranks, min(ranks, machine.gpus_per_host), **self.parallelism(ranks))

    def config(self) -> dict[str, Scalar]:
        """Return the sizes, `blocks` as one text."""
        return {**super().config(), "blocks": "-".join(map(str, self.blocks))}

    def compile(self, job: Job) -> Program:
        """Write the step."""
        builder = Builder(job)
        step = TrainingStep(
            builder,
            lambda samples: self.layers(builder.costs, samples),
            self.micro_batch,
            self.accumulation,
            self.tensors(),
            Buckets(builder, self.layers(builder.costs, self.micro_batch)),
        )
        return step.write()

    def tensors(self) -> dict[str, int]:
        """Bytes of a micro-batch's tensors."""
        images = self.micro_batch * 3 * self.pixels * self.pixels * PIXEL_BYTES
        return {"images": images, "labels": self.micro_batch * LABEL_BYTES}

    def layers(self, costs: Costs, samples: int) -> list[Layer]:
        """Return the network for a number of images."""
        count = sum(self.blocks)
        framework = costs.framework
        found = [self._stem(Blocks(costs, form_of(0, 1, 0, framework.fused)), samples)]
        images = Images(samples, self.channels, -(-self.pixels // 4))
        for stage, depth in enumerate(self.blocks):
            for number in range(depth):
                own = costs.of_layer(len(found) - 1)
                share, fused = own.framework.compiled_share_q16, own.framework.fused
                form = form_of(len(found) - 1, count, share, fused)
                blocks = Blocks(own, form)
                stride = 2 if stage and not number else 1
                nodes, images = bottleneck(blocks, images, self.channels * 2**stage, stride)
                compiled = form == "compiled"
                found.append(Layer(f"stage{stage}.{number}", nodes, compiled=compiled))
        return [*found, self._head(costs, images)]

    def _stem(self, blocks: Blocks, samples: int) -> Layer:
        raw = Images(samples, 3, self.pixels)
        images = raw.to(self.channels, 2)
        nodes = (
            convolution(blocks, "convolution", raw, self.channels, 7, 2, first=True),
            batch_norm(blocks, "norm", images),
            *activation(blocks, "relu", images),
            pool(blocks, "pool", images, 2),
        )
        return Layer("stem", nodes)

    def _head(self, costs: Costs, images: Images) -> Layer:
        blocks = Blocks(costs, "eager")
        nodes = (
            mean(blocks, "mean", images),
            blocks.linear("logits", images.samples, images.channels, self.classes),
            blocks.loss("loss", images.samples, self.classes),
        )
        return Layer("head", nodes)


def bottleneck(
    blocks: Blocks, images: Images, channels: int, stride: int
) -> tuple[tuple[Node, ...], Images]:
    """Return a residual block of three convolutions, and the images that it makes.

    Where it changes the images' shape, its shortcut has a convolution of its own.
    """
    inner = images.to(channels)
    small = inner.to(channels, stride)
    out = small.to(channels * EXPANSION)
    nodes = [
        convolution(blocks, "reduce", images, channels, 1),
        batch_norm(blocks, "norm1", inner),
        *activation(blocks, "relu1", inner),
        convolution(blocks, "convolve", inner, channels, 3, stride),
        batch_norm(blocks, "norm2", small),
        *activation(blocks, "relu2", small),
        convolution(blocks, "expand", small, out.channels, 1),
        batch_norm(blocks, "norm3", out),
    ]
    if images != out:
        nodes += [
            convolution(blocks, "shortcut", images, out.channels, 1, stride),
            batch_norm(blocks, "shortcut_norm", out),
        ]
    nodes += [add(blocks, "sum", out), *activation(blocks, "relu3", out)]
    return tuple(nodes), out
