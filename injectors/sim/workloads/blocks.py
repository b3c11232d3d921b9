"""Building blocks of models, as nodes: products, residuals, embeddings, losses.

Each has the form that the framework's settings ask for: compiled (few fused kernels, launched
cheaply), eager (the library's kernels), or eager and unfused (chains of element-wise kernels that
each go through memory). Norms and activations have files of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.sim.costs import Costs
from injectors.sim.job import ONE
from injectors.sim.launches import COMPILED_Q16, Launch, Launches
from injectors.sim.tape import Node, Parameter

Form = Literal["compiled", "eager", "unfused"]
SPACE = "void at::native::(anonymous namespace)::"
LOGIT_BYTES, INDEX_BYTES = 4, 8  # losses are computed in float32
SORT_PASSES = 4


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
        forward = make.gemm("gemm", (tokens, outputs, inputs), "tn", ops)
        dgrad = make.gemm("dgrad", (tokens, inputs, outputs), "nn", ("aten::mm",))
        wgrad = make.gemm("wgrad", (outputs, inputs, tokens), "nt", ("aten::mm",))
        weight = Parameter("weight", inputs * outputs)
        if not bias:
            return Node(name, "MmBackward0", (forward,), (dgrad, wgrad), (weight,))
        backward = (dgrad, wgrad, self._sum("bias_grad", tokens * outputs))
        parameters = (weight, Parameter("bias", outputs))
        return Node(name, "AddmmBackward0", (forward,), backward, parameters)

    def _sum(self, name: str, elements: int) -> Launch:
        if self.form == "compiled":
            return self.launches.triton(name, "red", ("sum",), 2, elements, 1)
        return self.launches.reduction(name, elements, ("aten::sum",))

    def residual(self, name: str, elements: int) -> tuple[Node, ...]:
        """The sum of a branch and what went around it; none where a norm's kernel does it."""
        if self.form == "compiled":
            return ()
        add = self.launches.elementwise("add", elements, ("aten::add",))
        return (Node(name, "AddBackward0", (add,), (add,)),)

    def gather(self, name: str, rows: int, width: int, table: int) -> Node:
        """Rows of a table of embeddings, and the adding of gradients to those rows."""
        make, size = self.launches, rows * width * self.costs.element_bytes
        kernel = f"{SPACE}indexSelectLargeIndex<{make.dtype}, long, unsigned int, 2, 2, -2>"
        ops, back = ("aten::embedding", "aten::index_select"), "aten::embedding_dense_backward"
        forward = make.named("gather", kernel, 2 * size, ops, family="embedding")
        zeros = (back, "aten::zeros")
        zero = make.elementwise("zero", table * width, zeros, "FillFunctor", 1)
        kernel, moved = "void cub::DeviceRadixSortOnesweepKernel<long>", 2 * INDEX_BYTES * rows
        sort = make.named("sort", kernel, SORT_PASSES * moved, (back, "aten::sort"))
        kernel = f"{SPACE}sum_and_scatter<{make.dtype}, long>"
        scatter = make.named("scatter", kernel, 3 * size, (back,), family="embedding")
        weight = Parameter("weight", table * width)
        return Node(name, "EmbeddingBackward0", (forward,), (zero, sort, scatter), (weight,))

    def loss(self, name: str, rows: int, classes: int) -> Node:
        """Cross entropy in float32, whatever the logits are."""
        make, elements = self.launches, rows * classes
        widened = LOGIT_BYTES if self.costs.element_bytes < LOGIT_BYTES else 0
        moved = elements * (2 * LOGIT_BYTES + widened)
        log, nll = "aten::cross_entropy_loss", "aten::nll_loss_forward"
        kernel = f"{SPACE}cunn_SoftMaxForward<4, float, float, float>"
        forward = make.named("softmax", kernel, moved, (log, "aten::_log_softmax"))
        pick = make.reduction("nll", rows, (log, nll), "nll_loss")
        kernel = f"{SPACE}cunn_SoftMaxBackward<4, float, float, float>"
        back = make.named("softmax", kernel, moved, ("aten::_log_softmax_backward_data",))
        ops = ("aten::nll_loss_backward",)
        fill = make.elementwise("nll", elements, ops, "FillFunctor", 1, element_bytes=LOGIT_BYTES)
        return Node(name, "LogSoftmaxBackward0", (forward, pick), (fill, back))


def form_of(number: int, layers: int, share_q16: int, fused: bool, plain: bool = False) -> Form:
    """Return the form of the `number`-th of `layers`: compiled ones come first.

    Others are eager, or unfused where they are written in `plain` operators.

    >>> [form_of(i, 4, 32768, True) for i in range(4)]
    ['compiled', 'compiled', 'eager', 'eager']
    """
    if not fused:
        return "unfused"
    if number * ONE < share_q16 * layers:
        return "compiled"
    return "unfused" if plain else "eager"
