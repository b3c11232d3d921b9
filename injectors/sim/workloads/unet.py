"""A denoising U-Net: halves of levels on the way down and up, joined at each level."""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.costs import Costs
from injectors.sim.tape import Layer, Node
from injectors.sim.workloads.blocks import Blocks, form_of
from injectors.sim.workloads.convolution import Images, convolution
from injectors.sim.workloads.image_blocks import activation, concatenate, upsample
from injectors.sim.workloads.image_norms import group_norm
from injectors.sim.workloads.unet_blocks import (
    TIME_EXPANSION,
    Text,
    attention_block,
    residual_block,
)

LATENT_CHANNELS = 4


@dataclass(frozen=True)
class Sizes:
    """Sizes of a U-Net; `levels` multiply `channels`, each level halves the edge of the last.

    All levels but the first one have attention.
    """

    channels: int
    levels: tuple[int, ...]
    blocks: int
    edge: int
    text: Text


class UNet:
    """The network for a number of samples; layers are compiled in their order, as far as asked."""

    def __init__(self, costs: Costs, sizes: Sizes, samples: int) -> None:
        self._costs, self._sizes = costs, sizes
        self._time = sizes.channels * TIME_EXPANSION
        self._images = Images(samples, LATENT_CHANNELS, sizes.edge)
        self._skips: list[Images] = []
        self._count = 2 * len(sizes.levels) + 1
        self._made: list[Layer] = []

    def layers(self) -> list[Layer]:
        """Return all layers, from latents to the loss."""
        levels = range(len(self._sizes.levels))
        found = [self._enter(), *(self._down(level) for level in levels), self._middle()]
        return [*found, *(self._up(level) for level in reversed(levels)), self._leave()]

    def _blocks(self, number: int) -> Blocks:
        costs = self._costs.of_layer(number)
        share, fused = costs.framework.compiled_share_q16, costs.framework.fused
        return Blocks(costs, form_of(number, self._count, share, fused))

    def _plain(self) -> Blocks:
        return Blocks(self._costs, "eager" if self._costs.framework.fused else "unfused")

    def _enter(self) -> Layer:
        blocks, samples, channels = self._plain(), self._images.samples, self._sizes.channels
        make, elements = blocks.launches, self._images.elements
        draw = make.elementwise("randn", elements, ("aten::randn_like", "aten::normal_"), tensors=1)
        mix = make.elementwise("mix", elements, ("aten::add",))
        nodes = (
            Node("noise", "", (draw, mix)),
            blocks.linear("time1", samples, channels, self._time),
            blocks.linear("time2", samples, self._time, self._time),
            convolution(blocks, "convolution", self._images, channels, first=True),
        )
        self._images = self._images.to(channels)
        return Layer("enter", nodes)

    def _down(self, level: int) -> Layer:
        blocks, channels = self._blocks(level), self._channels(level)
        nodes: list[Node] = []
        for number in range(self._sizes.blocks):
            nodes += self._pair(blocks, f"block{number}", channels, level > 0)
        self._skips.append(self._images)
        if level < len(self._sizes.levels) - 1:
            nodes.append(convolution(blocks, "down", self._images, channels, stride=2))
            self._images = self._images.to(channels, 2)
        return self._layer(f"down{level}", nodes, blocks)

    def _middle(self) -> Layer:
        blocks = self._blocks(len(self._sizes.levels))
        channels = self._images.channels
        nodes = [*self._pair(blocks, "block0", channels, True)]
        nodes += residual_block(blocks, "block1", self._images, channels, self._time)
        return self._layer("middle", nodes, blocks)

    def _up(self, level: int) -> Layer:
        blocks = self._blocks(2 * len(self._sizes.levels) - level)
        skip, channels = self._skips.pop(), self._channels(level)
        nodes: list[Node] = []
        if skip.edge != self._images.edge:
            self._images = Images(skip.samples, self._images.channels, skip.edge)
            nodes = [
                upsample(blocks, "upsample", self._images),
                convolution(blocks, "up", self._images, self._images.channels),
            ]
        self._images = self._images.to(self._images.channels + skip.channels)
        nodes.append(concatenate(blocks, "join", self._images))
        for number in range(self._sizes.blocks):
            nodes += self._pair(blocks, f"block{number}", channels, level > 0)
        return self._layer(f"up{level}", nodes, blocks)

    def _leave(self) -> Layer:
        blocks, images = self._plain(), self._images
        make, elements = blocks.launches, images.pixels * LATENT_CHANNELS
        forward = (
            make.elementwise("mse", elements, ("aten::mse_loss",)),
            make.reduction("mean", elements, ("aten::mse_loss", "aten::mean"), "MeanOps"),
        )
        backward = (make.elementwise("mse", elements, ("aten::mse_loss_backward",)),)
        nodes = (
            group_norm(blocks, "norm", images),
            *activation(blocks, "silu", images, "silu"),
            convolution(blocks, "convolution", images, LATENT_CHANNELS),
            Node("loss", "MseLossBackward0", forward, backward),
        )
        return Layer("leave", nodes)

    def _pair(self, blocks: Blocks, part: str, channels: int, attends: bool) -> list[Node]:
        nodes = [*residual_block(blocks, part, self._images, channels, self._time)]
        self._images = self._images.to(channels)
        if attends:
            nodes += attention_block(blocks, f"{part}.attention", self._images, self._sizes.text)
        return nodes

    def _channels(self, level: int) -> int:
        return self._sizes.channels * self._sizes.levels[level]

    def _layer(self, name: str, nodes: list[Node], blocks: Blocks) -> Layer:
        return Layer(name, tuple(nodes), compiled=blocks.form == "compiled")
