"""Building blocks of models, as nodes: linear layers, norms, activations, residuals.

Each has the form that the framework's settings ask for: compiled (few fused kernels, launched
cheaply), eager (the library's kernels), or eager and unfused (chains of element-wise kernels that
each go through memory).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.sim import kernels
from injectors.sim.costs import (
    ACTIVATION_Q16,
    FUSED_NORM_Q16,
    REDUCTION_Q16,
    UNFUSED_NORM_Q16,
    Costs,
)
from injectors.sim.job import ONE
from injectors.sim.launches import COMPILED_Q16, Launch, Launches
from injectors.sim.tape import Node, Parameter, Step

Form = Literal["compiled", "eager", "unfused"]
# Of a norm written out in Python: operator, functor, operands.
UNFUSED_NORM = (
    ("mean", "MeanOps"), ("sub", "CUDAFunctor_add"), ("pow", "pow_tensor_scalar"),
    ("variance", "MeanOps"), ("rsqrt", "rsqrt"), ("mul", "MulFunctor"), ("mul_1", "MulFunctor"),
    ("add", "CUDAFunctor_add"),
)  # fmt: skip
UNFUSED_GELU = ("pow", "mul", "add", "mul_1", "tanh", "add_1", "mul_2", "mul_3")


@dataclass(frozen=True)
class Blocks:
    """Makes nodes in one form."""

    costs: Costs
    form: Form

    @property
    def launches(self) -> Launches:
        """Kernels of this form's host cost."""
        return Launches(self.costs, COMPILED_Q16 if self.form == "compiled" else ONE)

    def linear(self, name: str, tokens: int, inputs: int, outputs: int, bias: bool = True) -> Node:
        """A product with a weight; its backward makes gradients of input, weight and bias."""
        make = self.launches
        operator = "aten::addmm" if bias else "aten::mm"
        ops = (operator,) if self.form == "compiled" else ("aten::linear", operator)
        backward: list[Step] = [
            make.gemm("dgrad", (tokens, inputs, outputs), "nn", ("aten::mm",)),
            make.gemm("wgrad", (outputs, inputs, tokens), "nt", ("aten::mm",)),
        ]
        parameters = [Parameter("weight", inputs * outputs)]
        if bias:
            backward.append(self._sum("bias_grad", tokens * outputs))
            parameters.append(Parameter("bias", outputs))
        forward = make.gemm("gemm", (tokens, outputs, inputs), "tn", ops)
        function = "AddmmBackward0" if bias else "MmBackward0"
        return Node(name, function, (forward,), tuple(backward), tuple(parameters))

    def _sum(self, name: str, elements: int) -> Launch:
        if self.form == "compiled":
            return self.launches.triton(name, "red", ("sum",), 2, elements, 1)
        return self.launches.reduction(name, elements, ("aten::sum",))

    def norm(self, name: str, tokens: int, width: int, residual: bool) -> Node:
        """A layer norm; compiled code adds the residual in the same kernel where there is one."""
        steps = {
            "compiled": self._compiled_norm,
            "eager": self._eager_norm,
            "unfused": self._unfused_norm,
        }[self.form]
        forward, backward = steps(tokens * width, residual)
        parameters = (Parameter("weight", width), Parameter("bias", width))
        return Node(name, "NativeLayerNormBackward0", forward, backward, parameters)

    def _compiled_norm(
        self, elements: int, residual: bool
    ) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        make, ops = self.launches, ("add", "native_layer_norm")
        tensors = 4 if residual else 2
        forward = make.triton("norm", "per", ops, 0, elements, tensors, "norm")
        backward = make.triton("norm", "red", (*ops, "backward"), 1, elements, tensors + 1, "norm")
        weights = make.triton("weights", "red", ("native_layer_norm_backward",), 4, elements, 2)
        return (forward,), (backward, weights)

    def _eager_norm(
        self, elements: int, residual: bool
    ) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        make, size = self.launches, elements * self.costs.element_bytes
        space, types = "void at::native::(anonymous namespace)::", f"<{make.dtype}, float>"
        ops = ("aten::layer_norm", "aten::native_layer_norm")
        forward = make.named(
            "norm", f"{space}vectorized_layer_norm_kernel{types}", 2 * size, ops,
            FUSED_NORM_Q16, "norm",
        )  # fmt: skip
        back = ("aten::native_layer_norm_backward",)
        inputs = make.named(
            "norm", f"{space}layer_norm_grad_input_kernel_vectorized{types}", 3 * size, back,
            FUSED_NORM_Q16, "norm",
        )  # fmt: skip
        weights = make.named(
            "weights", f"{space}GammaBetaBackwardCUDAKernel{types}", 2 * size, back,
            REDUCTION_Q16, "norm",
        )  # fmt: skip
        return (forward,), (inputs, weights)

    def _unfused_norm(
        self, elements: int, residual: bool
    ) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        def chain(count: int) -> tuple[Step, ...]:
            return tuple(
                self.launches.elementwise(
                    "norm" if i == 0 else f"norm.{i}",
                    elements,
                    (f"aten::{name.split('_')[0]}",),
                    functor,
                    share_q16=UNFUSED_NORM_Q16,
                )
                for i, (name, functor) in enumerate((UNFUSED_NORM * 2)[:count])
            )

        weights = self.launches.reduction("weights", elements, ("aten::sum",))
        return chain(len(UNFUSED_NORM)), (*chain(len(UNFUSED_NORM) + 4), weights)

    def residual(self, name: str, elements: int) -> tuple[Node, ...]:
        """The sum of a branch and what went around it; none where a norm's kernel does it."""
        if self.form == "compiled":
            return ()
        add = self.launches.elementwise("add", elements, ("aten::add",))
        return (Node(name, "AddBackward0", (add,), (add,)),)

    def gelu(self, name: str, elements: int) -> Node:
        """An activation."""
        make = self.launches
        if self.form == "compiled":
            forward = make.triton("gelu", "poi", ("gelu",), 3, elements, 2)
            backward = make.triton("gelu", "poi", ("gelu_backward",), 5, elements, 3)
            return Node(name, "CompiledFunctionBackward", (forward,), (backward,))
        if self.form == "eager":
            ahead = self._activation("gelu", elements, "aten::gelu", "GeluCUDAKernelImpl", 2)
            back = self._activation(
                "gelu", elements, "aten::gelu_backward", "GeluBackwardCUDAKernelImpl", 3
            )
            return Node(name, "GeluBackward0", (ahead,), (back,))
        chain = tuple(
            self._activation(
                "gelu" if i == 0 else f"gelu.{i}",
                elements,
                f"aten::{operator.split('_')[0]}",
                "MulFunctor",
                3,
            )
            for i, operator in enumerate(UNFUSED_GELU)
        )
        return Node(name, "MulBackward0", chain, chain)

    def _activation(
        self, name: str, elements: int, operator: str, functor: str, tensors: int
    ) -> Launch:
        share = ACTIVATION_Q16
        return self.launches.elementwise(
            name, elements, (operator,), functor, tensors, share_q16=share
        )

    def gather(self, name: str, rows: int, width: int, table: int) -> Node:
        """Rows of a table of embeddings, and the adding of gradients to those rows."""
        make, size = self.launches, rows * width * self.costs.element_bytes
        space = "void at::native::(anonymous namespace)::"
        forward = make.named(
            "gather", f"{space}indexSelectLargeIndex<{make.dtype}, long, unsigned int, 2, 2, -2>",
            2 * size, ("aten::embedding", "aten::index_select"), family="embedding",
        )  # fmt: skip
        sort = make.named(
            "sort", "void cub::DeviceRadixSortOnesweepKernel<long>", 16 * rows * 4,
            ("aten::embedding_dense_backward", "aten::sort"),
        )  # fmt: skip
        backward = make.named(
            "scatter", f"{space}sum_and_scatter<{make.dtype}, long>", 3 * size,
            ("aten::embedding_dense_backward",), family="embedding",
        )  # fmt: skip
        zero = make.elementwise(
            "zero", table * width, ("aten::embedding_dense_backward", "aten::zeros"),
            "FillFunctor", 1,
        )  # fmt: skip
        parameters = (Parameter("weight", table * width),)
        return Node(name, "EmbeddingBackward0", (forward,), (zero, sort, backward), parameters)

    def loss(self, name: str, rows: int, classes: int) -> Node:
        """Cross entropy in float32, whatever the logits are."""
        make, elements = self.launches, rows * classes
        extra = 4 if self.costs.element_bytes == 2 else 0
        moved = elements * (4 * 2 + extra)
        log = "aten::cross_entropy_loss"
        softmax = (
            "void at::native::(anonymous namespace)::cunn_SoftMax{way}<4, float, float, float>"
        )
        forward = make.named(
            "softmax", softmax.format(way="Forward"), moved, (log, "aten::_log_softmax")
        )
        pick = make.reduction("nll", rows, (log, "aten::nll_loss_forward"), "nll_loss")
        back = make.named(
            "softmax", softmax.format(way="Backward"), moved, ("aten::_log_softmax_backward_data",)
        )
        fill = make.elementwise(
            "nll", elements, ("aten::nll_loss_backward",), "FillFunctor", 1, element_bytes=4
        )
        return Node(name, "LogSoftmaxBackward0", (forward, pick), (fill, back))


def form_of(number: int, layers: int, share_q16: int, fused: bool) -> Form:
    """Return the form of the `number`-th of `layers`: compiled ones come first.

    >>> [form_of(i, 4, 32768, True) for i in range(4)]
    ['compiled', 'compiled', 'eager', 'eager']
    """
    if not fused:
        return "unfused"
    return "compiled" if number * ONE < share_q16 * layers else "eager"


__all__ = ["Blocks", "Form", "form_of", "kernels"]
