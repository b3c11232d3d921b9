"""A transformer with experts: ranks send each token to the ranks that hold its experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import PositiveInt, model_validator

from injectors.sim import kernels
from injectors.sim.builder import Builder
from injectors.sim.costs import Costs
from injectors.sim.launches import Exchange, Launch, ReadBack
from injectors.sim.program import Noise, Stream
from injectors.sim.tape import Layer, Node, Parameter, Step
from injectors.sim.workloads.activations import gelu
from injectors.sim.workloads.blocks import Blocks, form_of
from injectors.sim.workloads.buckets import Buckets
from injectors.sim.workloads.layers import Shape, attention_nodes, embedding, head
from injectors.sim.workloads.norms import layer_norm
from injectors.sim.workloads.transformer import Transformer

WORK = "experts"
COUNT_BYTES = 8


class ExpertBuckets(Buckets):
    """Dense gradients are averaged over all ranks, those of experts over who holds the same."""

    norm_group = "world"


class MoeTransformer(Transformer):
    """Each token goes to `top_k` of `experts` experts, of which each rank of a group has its part.

    Two exchanges of all tokens a layer and direction; nothing hides them.
    """

    title: ClassVar[str] = "Transformer language model with experts"
    layers: PositiveInt = 10
    hidden: PositiveInt = 2048
    heads: PositiveInt = 16
    micro_batch: PositiveInt = 4
    compiled: bool = False  # counts are read back in every layer, which compiled code cannot
    experts: PositiveInt = 32
    top_k: PositiveInt = 2
    expert_hidden: PositiveInt = 4096
    expert_parallel: PositiveInt = 8

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        if self.top_k > self.experts:
            raise ValueError(
                f"top_k must be at most experts, got {self.top_k} of {self.experts} experts"
            )
        return self

    def parallelism(self, ranks: int) -> dict[str, int]:
        """All ranks train on their own data; groups of them share out the experts."""
        ways = min(self.expert_parallel, ranks)
        if ranks % ways or self.experts % ways:
            raise ValueError(
                f"ranks and experts must be multiples of expert_parallel, got {ranks} ranks and"
                f" {self.experts} experts for {ways}"
            )
        return {"data": ranks, "expert": ways}

    def share(self, builder: Builder, layers: Sequence[Layer]) -> ExpertBuckets:
        """Return data parallelism of dense parameters and of experts."""
        return ExpertBuckets(builder, layers)

    def layers_of(self, builder: Builder, samples: int) -> list[Layer]:
        """Return the model for a number of samples."""
        shape = self.shape(builder.job, samples)
        ways = builder.job.places.expert
        return [
            embedding(builder.costs, shape),
            *(self._layer(builder.costs, shape, number, ways) for number in range(self.layers)),
            head(builder.costs, shape),
        ]

    def _layer(self, costs: Costs, shape: Shape, number: int, ways: int) -> Layer:
        costs = costs.of_layer(number)
        framework = costs.framework
        form = form_of(number, shape.layers, framework.compiled_share_q16, framework.fused)
        blocks = Blocks(costs, form)
        nodes = (
            *attention_nodes(blocks, shape, number),
            layer_norm(blocks, "norm2", shape.tokens, shape.hidden, residual=True),
            *self._routed(blocks, shape, ways),
            *blocks.residual("residual2", shape.tokens * shape.hidden),
        )
        return Layer(f"layer{number}", nodes, compiled=form == "compiled")

    def _routed(self, blocks: Blocks, shape: Shape, ways: int) -> tuple[Node, ...]:
        """Router, the way to the experts, the experts, and the way back."""
        width, inner = shape.hidden, self.expert_hidden
        sent = shape.tokens * self.top_k
        held = self.experts // ways
        return (
            blocks.linear("router", shape.tokens, width, self.experts, bias=False),
            _chosen(blocks, shape.tokens * self.experts),
            _carried(blocks, "dispatch", sent * width, counts=True),
            _grouped(blocks, "up", sent, width, inner, held),
            _activation(blocks, sent * inner),
            _grouped(blocks, "down", sent, inner, width, held),
            _carried(blocks, "combine", sent * width, counts=False),
        )


def _chosen(blocks: Blocks, elements: int) -> Node:
    """Which experts each token goes to."""
    make, size = blocks.launches, elements * 4
    space = "void at::native::(anonymous namespace)::"
    softmax = make.named(
        "softmax", f"{space}softmax_warp_forward<float, float, float, 6, false, false>",
        2 * size, ("aten::softmax", "aten::_softmax"),
    )  # fmt: skip
    top = make.named(
        "topk", "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>",
        size, ("aten::topk",),
    )  # fmt: skip
    back = make.named(
        "softmax", f"{space}softmax_warp_backward<float, float, float, 6, false, false>",
        3 * size, ("aten::_softmax_backward_data",),
    )  # fmt: skip
    scatter = make.named(
        "topk", f"{space}_scatter_gather_elementwise_kernel", size, ("aten::scatter",)
    )
    return Node("choice", "SoftmaxBackward0", (softmax, top), (scatter, back))


def _carried(blocks: Blocks, name: str, elements: int, counts: bool) -> Node:
    """Sort tokens by expert and exchange them, and the reverse for gradients.

    How many come must be known to the host first, so it reads that back.
    """
    make, size = blocks.launches, elements * blocks.costs.element_bytes
    gather = "void at::native::vectorized_gather_kernel<16, long>"
    move = make.named("permute", gather, 2 * size, ("aten::index_select",))
    exchange = Exchange("tokens", "all_to_all", size, "expert", Stream.EXPERT_PARALLEL)
    before: tuple[Step, ...] = ()
    if counts:
        tell = Exchange("counts", "all_to_all", 64 * COUNT_BYTES, "expert", Stream.EXPERT_PARALLEL)
        before = (tell, ReadBack("counts_read"))
    if name == "dispatch":
        forward: tuple[Step, ...] = (move, *before, exchange)
        return Node(name, "AllToAllBackward", forward, (exchange, move))
    return Node(name, "AllToAllBackward", (exchange, move), (move, exchange))


def _grouped(
    blocks: Blocks, name: str, tokens: int, inputs: int, outputs: int, experts: int
) -> Node:
    """One product for each expert that the rank holds, in one kernel."""

    def product(step: str, shape: tuple[int, int, int], layout: kernels.Layout) -> Launch:
        made = blocks.launches.gemm(step, shape, layout, ("aten::_grouped_mm",))
        gpu = blocks.costs.machine.gpu
        kernel = kernels.grouped_gemm(gpu, blocks.launches.precision) if gpu else None
        return replace(made, label=replace(made.label, kernel=kernel), work=WORK, noise=Noise.GEMM)

    backward = (
        product("dgrad", (tokens, inputs, outputs), "nn"),
        product("wgrad", (outputs, inputs, tokens), "nt"),
    )
    weight = Parameter("weight", experts * inputs * outputs, "expert_data")
    forward = product("gemm", (tokens, outputs, inputs), "tn")
    return Node(name, "GroupedMmBackward0", (forward,), backward, (weight,))


def _activation(blocks: Blocks, elements: int) -> Node:
    node = gelu(blocks, "gelu", elements)

    def routed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(replace(s, work=WORK) if isinstance(s, Launch) else s for s in steps)

    return replace(node, forward=routed(node.forward), backward=routed(node.backward))
