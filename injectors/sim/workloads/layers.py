"""The layers of a decoder-only transformer, or of the part of it that one rank computes."""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.costs import Costs
from injectors.sim.launches import Exchange
from injectors.sim.program import Stream
from injectors.sim.tape import Layer, Node
from injectors.sim.workloads.activations import gelu
from injectors.sim.workloads.attention import attention
from injectors.sim.workloads.blocks import Blocks, form_of
from injectors.sim.workloads.norms import layer_norm


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer and of one micro-batch.

    Attributes:
        samples, sequence: Sequences of a micro-batch and tokens of each, padding included.
        tensor: Ranks that share each layer.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    samples: int
    sequence: int
    tensor: int = 1

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch."""
        return self.samples * self.sequence


def transformer_layers(costs: Costs, shape: Shape) -> list[Layer]:
    """Return embedding, all layers and head."""
    return [
        embedding(costs, shape),
        *(decoder(costs, shape, number) for number in range(shape.layers)),
        head(costs, shape),
    ]


def embedding(costs: Costs, shape: Shape) -> Layer:
    """Token and position embeddings; tensor-parallel ranks hold a part of the words each."""
    blocks = Blocks(costs, form_of(0, 1, 0, costs.framework.fused))
    elements = shape.tokens * shape.hidden
    words = -(-shape.vocabulary // shape.tensor)
    add = blocks.launches.elementwise("add", elements, ("aten::add",))
    sums = (_summed(costs, shape, "words.sum"),) if shape.tensor > 1 else ()
    return Layer(
        "embedding",
        (
            blocks.gather("words", shape.tokens, shape.hidden, words),
            *(Node("words_sum", "", (exchange,)) for exchange in sums),
            blocks.gather("positions", shape.sequence, shape.hidden, shape.sequence),
            Node("sum", "AddBackward0", (add,)),
        ),
    )


def decoder(costs: Costs, shape: Shape, number: int) -> Layer:
    """One layer: attention and a feed-forward part, each behind a norm and beside a residual."""
    costs = costs.of_layer(number)
    framework = costs.framework
    share, fused, plain = framework.compiled_share_q16, framework.fused, framework.plain
    form = form_of(number, shape.layers, share, fused, plain)
    blocks = Blocks(costs, form)
    tokens, hidden, ways = shape.tokens, shape.hidden, shape.tensor
    nodes = (
        *attention_nodes(blocks, shape, number),
        layer_norm(blocks, "norm2", tokens, hidden, residual=True),
        _split(costs, shape, blocks.linear("up", tokens, hidden, 4 * hidden // ways)),
        gelu(blocks, "gelu", 4 * tokens * hidden // ways),
        _joined(costs, shape, blocks.linear("down", tokens, 4 * hidden // ways, hidden)),
        *blocks.residual("residual2", tokens * hidden),
    )
    return Layer(f"layer{number}", nodes, compiled=form == "compiled")


def attention_nodes(blocks: Blocks, shape: Shape, number: int) -> tuple[Node, ...]:
    """The first half of the `number`-th layer, up to its residual."""
    costs, tokens, hidden, ways = blocks.costs, shape.tokens, shape.hidden, shape.tensor
    heads, width = shape.heads // ways, hidden // ways
    return (
        layer_norm(blocks, "norm1", tokens, hidden, residual=number > 0),
        _split(costs, shape, blocks.linear("qkv", tokens, hidden, 3 * width)),
        attention(blocks, "attention", shape.samples, shape.sequence, heads, width),
        _joined(costs, shape, blocks.linear("projection", tokens, width, hidden)),
        *blocks.residual("residual1", tokens * hidden),
    )


def head(costs: Costs, shape: Shape) -> Layer:
    """Final norm, logits and loss."""
    blocks = Blocks(costs, form_of(0, 1, 0, costs.framework.fused))
    words = -(-shape.vocabulary // shape.tensor)
    logits = blocks.linear("logits", shape.tokens, shape.hidden, words, bias=False)
    return Layer(
        "head",
        (
            layer_norm(blocks, "norm", shape.tokens, shape.hidden, residual=True),
            _split(costs, shape, logits),
            blocks.loss("loss", shape.tokens, words),
        ),
    )


def _summed(costs: Costs, shape: Shape, name: str) -> Exchange:
    size = shape.tokens * shape.hidden * costs.element_bytes
    return Exchange(name, "all_reduce", size, "tensor", Stream.TENSOR_PARALLEL)


def _split(costs: Costs, shape: Shape, node: Node) -> Node:
    """Let ranks have a part of the outputs each: the input's gradient must be summed."""
    if shape.tensor < 2:
        return node
    dgrad, *others = node.backward
    exchange = _summed(costs, shape, "sum")
    return Node(node.name, node.function, node.forward, (dgrad, exchange, *others), node.parameters)


def _joined(costs: Costs, shape: Shape, node: Node) -> Node:
    """Let ranks have a part of the inputs each: the output must be summed."""
    if shape.tensor < 2:
        return node
    forward = (*node.forward, _summed(costs, shape, "sum"))
    return Node(node.name, node.function, forward, node.backward, node.parameters)
