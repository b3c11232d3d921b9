"""AdamW and the clipping of gradients, over few or very many kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from injectors.sim import kernels
from injectors.sim.builder import Builder
from injectors.sim.job import ONE
from injectors.sim.launches import MORE_Q16, Exchange, Launch
from injectors.sim.program import Stream
from injectors.sim.tape import Parameter

CHUNK = 65_536  # elements of a block of a multi-tensor kernel
BLOCKS = 320  # blocks of one such kernel
TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # tensors of one, by the lists that it goes over
STATE_BYTES = 4  # of the moments and the parameters that are updated
# What a loop over parameters launches for each one, with its operands.
LOOP = (
    ("mul_", "MulFunctor", 2), ("lerp_", "lerp", 3), ("mul_1", "MulFunctor", 2),
    ("addcmul_", "addcmul", 4), ("sqrt", "sqrt_kernel_cuda", 2), ("div", "DivFunctor", 2),
    ("add_", "CUDAFunctorOnSelf_add", 2), ("addcdiv_", "addcdiv", 4),
)  # fmt: skip


def adamw(builder: Builder, parameters: Sequence[Parameter], norm_group: str | None = None) -> None:
    """Write clipping, the update of `parameters` and zeroing, by the framework's settings.

    `norm_group` is the partition of ranks over which the norm of the gradients is summed.
    """
    norm(builder, parameters)
    if norm_group:
        sum_norm(builder, norm_group)
    update(builder, parameters)


def norm(builder: Builder, parameters: Sequence[Parameter]) -> None:
    """Write the norm of a rank's own gradients."""
    make, size = builder.launches, builder.costs.element_bytes
    kernel = kernels.multi_tensor("LpNormFunctor<float, (NormType)1, float, 1>", 1)
    with builder.under("clip"):
        for number, elements in enumerate(groups_of(parameters, 1)):
            launch = make.named(f"norm.{number}", kernel, elements * size, ("aten::_foreach_norm",))
            builder.launch(_constant(launch), host_q16=_host_q16(number))
        total = make.reduction("total", len(parameters), ("aten::linalg_vector_norm",))
        builder.launch(_constant(total))


def sum_norm(builder: Builder, group: str) -> None:
    """Write the sum of the norms of ranks that hold different gradients."""
    with builder.under("clip"):
        builder.exchange(Exchange("sum", "all_reduce", 4, group, Stream.DATA_PARALLEL))


def update(builder: Builder, parameters: Sequence[Parameter]) -> None:
    """Write scaling of the gradients by their norm, the update, and zeroing."""
    make, size = builder.launches, builder.costs.element_bytes
    kernel = kernels.multi_tensor("BinaryOpScalarTensorFunctor<float, 1, 1, 0>", 1)
    with builder.under("clip"):
        for number, elements in enumerate(groups_of(parameters, 1)):
            moved = 2 * elements * size
            launch = make.named(f"scale.{number}", kernel, moved, ("aten::_foreach_mul_",))
            builder.launch(_constant(launch), host_q16=_host_q16(number))
    with builder.under("optimizer"):
        first = len(builder.program.ops)
        if builder.job.framework.foreach_optimizer:
            _fused(builder, parameters)
        else:
            _loop(builder, parameters)
        builder.span("Optimizer.step#AdamW.step", first)
        builder.host("zero_grad", builder.job.host.op_ns)
        builder.span("Optimizer.zero_grad#AdamW.zero_grad", len(builder.program.ops) - 1)


def groups_of(parameters: Sequence[Parameter], lists: int) -> list[int]:
    """Return the elements of each multi-tensor kernel, filled up in order to its limits.

    >>> groups_of([Parameter("a", 30_000_000), Parameter("b", 10)], lists=4)
    [20971520, 9028490]
    """
    found, blocks, tensors = [0], 0, 0
    for parameter in parameters:
        left = parameter.elements
        tensors += 1
        while left > 0:
            if blocks == BLOCKS or tensors > TENSORS[lists]:
                found.append(0)
                blocks, tensors = 0, 1
            taken = min(left, (BLOCKS - blocks) * CHUNK)
            found[-1] += taken
            blocks += -(-taken // CHUNK)
            left -= taken
    return found


def _fused(builder: Builder, parameters: Sequence[Parameter]) -> None:
    make, name = builder.launches, "adamw"
    kernel = kernels.multi_tensor("FusedAdamMathFunctor<float, 4, (ADAM_MODE)1, false>", 4)
    size = make.costs.element_bytes
    for number, elements in enumerate(groups_of(parameters, 4)):
        # Parameter and both moments are read and written, the gradient is read.
        moved = elements * (2 * size + 4 * STATE_BYTES + size)
        launch = make.named(f"{name}.{number}", kernel, moved, ("aten::_fused_adamw_",))
        builder.launch(_constant(launch), host_q16=_host_q16(number))


def _loop(builder: Builder, parameters: Sequence[Parameter]) -> None:
    make = builder.launches
    for index, parameter in enumerate(parameters):
        for operator, functor, tensors in LOOP:
            launch = make.elementwise(
                f"adamw.{operator}.{index}",
                parameter.elements,
                (f"aten::{operator.rstrip('1')}",),
                functor,
                tensors,
                element_bytes=STATE_BYTES,
            )
            builder.launch(_constant(launch))


def _host_q16(number: int) -> int:
    """Host time of the `number`-th kernel of one operator, over an operator's."""
    return ONE if number == 0 else MORE_Q16


def _constant(launch: Launch) -> Launch:
    """The update's work does not depend on the batch."""
    return replace(launch, work="constant")
