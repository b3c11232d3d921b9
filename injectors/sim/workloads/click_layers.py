"""The dense layers of a click model, as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from injectors.sim.costs import ACTIVATION_Q16, GATHER_Q16
from injectors.sim.launches import Exchange
from injectors.sim.tape import Node
from injectors.sim.workloads.blocks import Blocks

INDEX_BYTES = 8
NATIVE = "void at::native::(anonymous namespace)::"
LOSS = "aten::binary_cross_entropy_with_logits"


def perceptron(blocks: Blocks, samples: int, widths: Sequence[int]) -> tuple[Node, ...]:
    """Linear layers from width to width, with a ReLU after each but the last."""
    nodes: list[Node] = []
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        nodes.append(blocks.linear(f"linear{number}", samples, inputs, outputs))
        if number < len(widths) - 2:
            nodes.append(_relu(blocks, f"relu{number}", samples * outputs))
    return tuple(nodes)


def _relu(blocks: Blocks, name: str, elements: int) -> Node:
    make, op = blocks.launches, ("aten::threshold_backward",)
    forward = make.elementwise("relu", elements, ("aten::relu", "aten::clamp_min"), "clamp", 2)
    backward = make.elementwise("relu", elements, op, "threshold", 3, ACTIVATION_Q16)
    return Node(name, "ReluBackward0", (forward,), (backward,))


def interaction(
    blocks: Blocks, samples: int, vectors: int, width: int, swap: Exchange
) -> tuple[Node, ...]:
    """Products of all pairs of a sample's vectors; backward ends with `swap`."""
    make, size = blocks.launches, blocks.costs.element_bytes
    cat = f"{NATIVE}CatArrayBatchedCopy<{make.dtype}, unsigned int, 2, 128, 1>"
    index = f"void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel<{make.dtype}>>"
    joined = 2 * samples * vectors * width * size
    picked = samples * (vectors * (vectors - 1) // 2) * (2 * size + INDEX_BYTES)
    rows, put = samples * vectors, ("aten::_index_put_impl_",)
    return (
        Node(
            "cat",
            "CatBackward0",
            (make.named("cat", cat, joined, ("aten::cat",)),),
            (make.named("split", cat, joined, ("aten::cat",)), swap),
        ),
        Node(
            "pairs",
            "BmmBackward0",
            (make.gemm("product", (rows, vectors, width), "tn", ("aten::bmm",)),),
            (
                make.gemm("left", (rows, width, vectors), "nn", ("aten::bmm",)),
                make.gemm("right", (rows, width, vectors), "nt", ("aten::bmm",)),
            ),
        ),
        Node(
            "pick",
            "IndexBackward0",
            (make.named("index", index, picked, ("aten::index",), GATHER_Q16),),
            (make.named("index_put", index, picked, put, GATHER_Q16),),
        ),
    )


def click_loss(blocks: Blocks, samples: int) -> Node:
    """Binary cross entropy of one number a sample, in float32."""
    make = blocks.launches
    forward = (
        *(
            make.elementwise(f"loss.{step}", samples, (LOSS, f"aten::{step}"), "MulFunctor", 2)
            for step in ("sub", "mul", "log_sigmoid_forward", "sub_")
        ),
        make.reduction("mean", samples, (LOSS, "aten::mean"), "MeanOps"),
    )
    backward = (make.elementwise("loss", samples, ("aten::sigmoid",), "sigmoid", 3),)
    return Node("loss", "BinaryCrossEntropyWithLogitsBackward0", forward, backward)
