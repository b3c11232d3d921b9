"""Norms and activations written out operator by operator, each of which goes through memory."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from injectors.sim.costs import Cost
from injectors.sim.launches import Launch, Launches


class Operator(NamedTuple):
    """One operator of a chain: torch's name of it, its functor, and its large operands."""

    name: str
    functor: str
    tensors: int


NORM = (
    Operator("mean", "MeanOps", 1),
    Operator("sub", "CUDAFunctor_add", 2),
    Operator("pow", "pow_tensor_scalar_kernel_impl", 2),
    Operator("mean", "MeanOps", 1),
    Operator("rsqrt", "rsqrt_kernel_cuda", 1),
    Operator("mul", "MulFunctor", 2),
    Operator("mul", "MulFunctor", 2),
    Operator("add", "CUDAFunctor_add", 2),
)
NORM_BACKWARD = (
    Operator("mul", "MulFunctor", 3),
    Operator("sum", "sum_functor", 1),
    Operator("mul", "MulFunctor", 2),
    Operator("mul", "MulFunctor", 2),
    Operator("sum", "sum_functor", 1),
    Operator("pow", "pow_tensor_scalar_kernel_impl", 2),
    Operator("mul", "MulFunctor", 3),
    Operator("div", "DivFunctor", 2),
    Operator("add", "CUDAFunctor_add", 3),
    Operator("sum", "sum_functor", 1),
    Operator("add", "CUDAFunctor_add", 3),
)
GELU = (
    Operator("pow", "pow_tensor_scalar_kernel_impl", 2),
    Operator("mul", "MulFunctor", 2),
    Operator("add", "CUDAFunctor_add", 3),
    Operator("mul", "MulFunctor", 2),
    Operator("tanh", "tanh_kernel_cuda", 2),
    Operator("add", "CUDAFunctor_add", 2),
    Operator("mul", "MulFunctor", 2),
    Operator("mul", "MulFunctor", 3),
)
GELU_BACKWARD = (
    Operator("mul", "MulFunctor", 3),
    Operator("mul", "MulFunctor", 3),
    Operator("mul", "MulFunctor", 2),
    Operator("tanh_backward", "tanh_backward_kernel_cuda", 3),
    Operator("mul", "MulFunctor", 2),
    Operator("pow", "pow_tensor_scalar_kernel_impl", 2),
    Operator("mul", "MulFunctor", 3),
    Operator("add", "CUDAFunctor_add", 3),
)


def unfused(
    make: Launches,
    name: str,
    elements: int,
    chain: tuple[Operator, ...],
    share_q16: int,
    family: str,
) -> tuple[Launch, ...]:
    """Return the kernels of a chain over `elements`, at a share of the bandwidth.

    The first one has the path of the fused kernel that the chain stands for.
    """

    def launch(number: int, operator: Operator) -> Launch:
        step = name if number == 0 else f"{name}.{number}"
        ops = (f"aten::{operator.name}",)
        made = make.elementwise(step, elements, ops, operator.functor, operator.tensors)
        return replace(made, cost=cost(made.cost))

    def cost(made: Cost) -> Cost:
        return make.costs.stream(made.bytes, share_q16, family)

    return tuple(launch(number, operator) for number, operator in enumerate(chain))
