"""The parts of a denoising U-Net, as nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from injectors.sim.launches import Launch
from injectors.sim.tape import Node, Step
from injectors.sim.workloads.activations import gelu
from injectors.sim.workloads.attention import attention
from injectors.sim.workloads.blocks import Blocks
from injectors.sim.workloads.convolution import Images, convolution
from injectors.sim.workloads.image_blocks import activation, add
from injectors.sim.workloads.image_norms import group_norm
from injectors.sim.workloads.norms import layer_norm

HEAD = 64  # numbers of an attention head
TIME_EXPANSION = 4  # numbers that tell the time of noising, over the network's channels


@dataclass(frozen=True)
class Text:
    """Encoded captions: `tokens` of `width` numbers for each sample."""

    tokens: int
    width: int


def residual_block(
    blocks: Blocks, part: str, images: Images, channels: int, time_width: int
) -> tuple[Node, ...]:
    """Two convolutions around the time's embedding, and what goes round them."""
    out = images.to(channels)
    nodes = [
        group_norm(blocks, f"{part}.norm1", images),
        *activation(blocks, f"{part}.silu1", images, "silu"),
        convolution(blocks, f"{part}.convolution1", images, channels),
        blocks.linear(f"{part}.time", images.samples, time_width, channels),
        add(blocks, f"{part}.add_time", out),
        group_norm(blocks, f"{part}.norm2", out),
        *activation(blocks, f"{part}.silu2", out, "silu"),
        convolution(blocks, f"{part}.convolution2", out, channels),
    ]
    if images != out:
        nodes.append(convolution(blocks, f"{part}.shortcut", images, channels, 1))
    return (*nodes, add(blocks, f"{part}.sum", out))


def attention_block(blocks: Blocks, part: str, images: Images, text: Text) -> tuple[Node, ...]:
    """Attention among pixels and to the text, and a gated feed-forward part."""
    width, tokens = images.channels, images.pixels
    length = images.edge * images.edge

    def norm(name: str) -> Node:
        return layer_norm(blocks, f"{part}.{name}", tokens, width, residual=False)

    def linear(name: str, inputs: int, outputs: int, rows: int = tokens) -> Node:
        return blocks.linear(f"{part}.{name}", rows, inputs, outputs, bias=False)

    return (
        group_norm(blocks, f"{part}.group_norm", images),
        linear("project_in", width, width),
        norm("norm1"),
        linear("qkv", width, 3 * width),
        attend(blocks, f"{part}.self", images, length),
        linear("self_out", width, width),
        *blocks.residual(f"{part}.residual1", images.elements),
        norm("norm2"),
        linear("query", width, width),
        linear("key_value", text.width, 2 * width, images.samples * text.tokens),
        attend(blocks, f"{part}.cross", images, text.tokens),
        linear("cross_out", width, width),
        *blocks.residual(f"{part}.residual2", images.elements),
        norm("norm3"),
        linear("up", width, 8 * width),
        gelu(blocks, f"{part}.gelu", 4 * images.elements),
        linear("down", 4 * width, width),
        *blocks.residual(f"{part}.residual3", images.elements),
        linear("project_out", width, width),
        add(blocks, f"{part}.sum", images),
    )


def attend(blocks: Blocks, name: str, images: Images, keys: int) -> Node:
    """Attention of all pixels of an image to `keys` others, none of them hidden."""
    queries = images.edge * images.edge
    heads = max(1, images.channels // HEAD)
    node = attention(blocks, name, images.samples, queries, heads, images.channels)
    # Attention without a mask is twice the work of a causal one that leaves out what is hidden.
    seen = 1 if blocks.costs.framework.attention == "math" else 2
    forward, backward = (
        tuple(_scaled(step, seen * keys, queries) for step in steps)
        for steps in (node.forward, node.backward)
    )
    return replace(node, forward=forward, backward=backward)


def _scaled(step: Step, times: int, over: int) -> Step:
    """Scale what grows with the pairs of query and key; all images have as many."""
    if not isinstance(step, Launch) or step.work != "attention":
        return step
    cost = replace(
        step.cost,
        compute_ns=step.cost.compute_ns * times // over,
        memory_ns=step.cost.memory_ns * min(times, over) // over,
        flops=step.cost.flops * times // over,
    )
    return replace(step, cost=cost, work="tokens")
