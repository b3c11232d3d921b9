"""Scaled dot-product attention as the kernels that it dispatches to."""

from __future__ import annotations

from dataclasses import replace

from injectors.sim import kernels
from injectors.sim.costs import SOFTMAX_Q16
from injectors.sim.launches import Launch
from injectors.sim.program import Noise
from injectors.sim.tape import Node, Step
from injectors.sim.workloads.blocks import Blocks

SDPA = "aten::scaled_dot_product_attention"


def attention(
    blocks: Blocks, name: str, samples: int, sequence: int, heads: int, width: int
) -> Node:
    """Attention of `heads` heads of together `width`, over `samples` sequences.

    Flash attention leaves out what lies behind the causal mask: half of the work. The mathematical
    form computes all of it, with every intermediate written to memory.
    """
    if blocks.costs.framework.attention == "math":
        return _math(blocks, name, samples, sequence, heads, width)
    return _flash(blocks, name, samples, sequence, heads, width)


def _flash(blocks: Blocks, name: str, samples: int, sequence: int, heads: int, width: int) -> Node:
    make, size = blocks.launches, samples * sequence * width * blocks.costs.element_bytes
    flops = 2 * samples * sequence * sequence * width  # causal: half of 4
    bf16 = blocks.costs.framework.precision == "bf16"
    operator = "aten::_scaled_dot_product_" + ("flash" if bf16 else "efficient") + "_attention"
    head = width // heads
    found = [
        kernels.flash(head, back) if bf16 else kernels.efficient_attention(back)
        for back in (False, True)
    ]
    grid = (-(-sequence // 128), samples, heads)

    def launch(step: str, kernel: str, work: int, moved: int, backward: bool) -> Launch:
        share = blocks.costs.flash_q16(backward)
        cost = blocks.costs.product(work, moved, "attention", share)
        ops = (operator + "_backward",) if backward else (SDPA, operator)
        launched = make.named(step, kernel, 0, ops)
        label = replace(launched.label, grid=grid, registers=255, shared_bytes=81_920)
        return replace(launched, cost=cost, noise=Noise.GEMM, work="attention", label=label)

    forward = launch("attention", found[0], flops, 4 * size, False)
    backward: tuple[Step, ...] = (launch("attention", found[1], flops * 5 // 2, 8 * size, True),)
    if bf16:
        before = make.named(
            "dot",
            "void pytorch_flash::flash_bwd_dot_do_o_kernel",
            2 * size,
            (operator + "_backward",),
        )
        after = make.named(
            "convert",
            "void pytorch_flash::flash_bwd_convert_dq_kernel",
            3 * size,
            (operator + "_backward",),
        )
        backward = (before, *backward, after)
    function = "ScaledDotProductFlashAttentionBackward0"
    return Node(name, function, (forward,), backward)


def _math(blocks: Blocks, name: str, samples: int, sequence: int, heads: int, width: int) -> Node:
    make = blocks.launches
    scores = samples * heads * sequence * sequence
    inputs = samples * sequence * width
    outer = (SDPA, "aten::_scaled_dot_product_attention_math")

    def product(step: str, layout: kernels.Layout) -> Launch:
        made = make.gemm(step, (sequence, sequence, width // heads), layout, ("aten::bmm",))
        count = samples * heads
        moved = made.cost.bytes * count
        cost = blocks.costs.product(made.cost.flops * count, moved, "gemm")
        label = replace(made.label, grid=(*made.label.grid[:2], count))
        return replace(made, cost=cost, label=label, work="attention")

    def over(step: str, elements: int, operator: str, tensors: int = 2) -> Launch:
        made = make.elementwise(step, elements, (*outer, operator), "MulFunctor", tensors)
        return replace(made, work="attention" if elements == scores else "tokens")

    softmax = "void at::native::(anonymous namespace)::softmax_warp_forward"
    size = scores * blocks.costs.element_bytes

    def soft(step: str, operator: str, tensors: int) -> Launch:
        made = make.named(step, softmax, tensors * size, (*outer, operator), SOFTMAX_Q16)
        return replace(made, work="attention")

    forward = (
        over("scale_q", inputs, "aten::mul"),
        over("scale_k", inputs, "aten::mul"),
        product("attention", "tn"),
        over("mask", scores, "aten::add", 3),
        soft("softmax", "aten::_softmax", 2),
        product("values", "nn"),
        over("merge", inputs, "aten::clone"),
    )
    backward = (
        over("split", inputs, "aten::clone"),
        product("values_grad", "nt"),
        product("weights_grad", "tn"),
        soft("softmax", "aten::_softmax_backward_data", 3),
        over("mask", scores, "aten::copy_"),
        product("attention", "nn"),
        product("keys_grad", "nt"),
        over("scale_q", inputs, "aten::mul"),
        over("scale_k", inputs, "aten::mul"),
    )
    return Node(name, "SoftmaxBackward0", forward, backward)
