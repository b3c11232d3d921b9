"""Building blocks of the models that run on CPU cores, as nodes."""

from __future__ import annotations

from dataclasses import replace

from injectors.sim.launches import Launch
from injectors.sim.tape import Node, Parameter, Step
from injectors.sim.workloads.cpu.operators import Operators

# Of chains that are not fused: operator and kind, forward and backward.
NORM_CHAIN = ("mean", "sub", "mul", "mean", "add", "rsqrt", "mul", "mul", "add")
NORM_BACK = ("mul", "sum", "mul", "sum", "mul", "sum", "mul", "mul", "mul", "sum", "add", "mul")
GELU_CHAIN = ("mul", "mul", "mul", "add", "mul", "tanh", "add", "mul", "mul")
GELU_BACK = ("mul",) * 11 + ("add",) * 4
SOFTMAX_CHAIN = ("amax", "sub", "exp", "sum", "div")
SOFTMAX_BACK = ("div", "mul", "sum", "add", "mul", "add")
KINDS = {"sub": "add"}
# Rows of work of steps whose shapes are compiled, and of those beyond the limit of graphs.
GRAPHS, EAGER = "graphs.", "eager."
Halves = tuple[tuple[Step, ...], tuple[Step, ...]]
ROWS = ("rsqrt",)  # operators on one number a row
# Guards of compiled code, and the frames around it: forward, backward.
ENTER_NS, ENTER_BACK_NS = 150_000, 100_000


class Parts:
    """Makes nodes of one precision; `fused`: element-wise chains are compiled into one kernel.

    `compiled` models without `fused` run these chains op by op; others call the library. Where
    graphs are `limited`, steps differ in whether they run compiled.
    """

    def __init__(
        self,
        operators: Operators,
        compiled: bool = False,
        fused: bool = True,
        limited: bool = False,
    ) -> None:
        self.operators, self.compiled, self.fused = operators, compiled, fused
        self.limited = limited

    def linear(self, name: str, rows: int, inputs: int, outputs: int, bias: bool = True) -> Node:
        """A product with a weight; its backward makes gradients of input, weight and bias."""
        make = self.operators.product
        op = "aten::addmm" if bias else "aten::mm"
        casts = self._casts(rows * inputs + inputs * outputs)
        forward = make("gemm", ("aten::linear", op), (rows, outputs, inputs))
        backward: list[Step] = [
            make("dgrad", ("aten::mm",), (rows, inputs, outputs), layout="nn"),
            make("wgrad", ("aten::mm",), (outputs, inputs, rows), layout="nt"),
        ]
        parameters = [Parameter("weight", inputs * outputs)]
        if bias:
            backward.append(self.pointwise("bias_grad", "sum", rows * outputs))
            parameters.append(Parameter("bias", outputs))
        backward += [replace(cast, name=f"{cast.name}_back") for cast in casts]
        steps = (*casts, forward)
        return Node(name, "AddmmBackward0", steps, tuple(backward), tuple(parameters))

    def _casts(self, elements: int) -> list[Launch]:
        """What autocast copies into the narrow type for each product."""
        if self.operators.precision != "bfloat16":
            return []
        ops = ("aten::to", "aten::_to_copy", "aten::copy_")
        return [self.operators.pointwise("cast", ops, elements, "copy")]

    def pointwise(self, name: str, operator: str, elements: int, work: str = "tokens") -> Launch:
        """One element-wise operator."""
        kind = KINDS.get(operator, operator)
        return self.operators.pointwise(name, (f"aten::{operator}",), elements, kind, work)

    def add(self, name: str, elements: int) -> Node:
        """A sum; its gradient goes to both without work, but for the adding up of branches."""
        return Node(
            name,
            "AddBackward0",
            (self.pointwise("add", "add", elements),),
            (self.pointwise("branches", "add", elements),),
        )

    def norm(self, name: str, rows: int, width: int) -> Node:
        """A layer norm."""
        forward, backward = self._halves(rows * width, rows, "norm", "tokens")
        parameters = (Parameter("weight", width), Parameter("bias", width))
        return Node(name, "NativeLayerNormBackward0", forward, backward, parameters)

    def gelu(self, name: str, elements: int) -> Node:
        """GELU in its tanh form."""
        forward, backward = self._halves(elements, elements, "gelu", "tokens")
        return Node(name, "GeluBackward0", forward, backward)

    def softmax(self, name: str, elements: int, rows: int, work: str) -> Node:
        """A softmax over the last axis."""
        forward, backward = self._halves(elements, rows, "softmax", work)
        return Node(name, "SoftmaxBackward0", forward, backward)

    def _halves(self, elements: int, rows: int, what: str, work: str) -> Halves:
        library = {"norm": "layer_norm", "gelu": "gelu", "softmax": "softmax"}[what]
        if not self.compiled:
            return self._whole(elements, library, f"aten::{library}", work)
        kernel = f"graph_0_cpp_fused_{library}_0"
        whole = self._whole(elements, f"fused_{what}", kernel, _only(GRAPHS, work, self.limited))
        if self.fused and not self.limited:
            return whole
        apart = self._apart(elements, rows, what, _only(EAGER, work, self.limited))
        if not self.limited:
            return apart
        return (*whole[0], *apart[0]), (*whole[1], *apart[1])

    def _apart(self, elements: int, rows: int, what: str, work: str) -> Halves:
        chains = {
            "norm": (NORM_CHAIN, NORM_BACK),
            "gelu": (GELU_CHAIN, GELU_BACK),
            "softmax": (SOFTMAX_CHAIN, SOFTMAX_BACK),
        }[what]
        forward, backward = (self._chain(chain, elements, rows, work) for chain in chains)
        return forward, backward

    def _whole(self, elements: int, kind: str, operator: str, work: str) -> Halves:
        make = self.operators.pointwise
        back = operator if operator.startswith("graph") else f"{operator}_backward"
        forward = make("whole", (operator,), elements, kind, work)
        backward = make("whole", (back,), elements, f"{kind}_back", work)
        if not operator.startswith("graph"):
            return (forward,), (backward,)
        return (_entered(forward, ENTER_NS),), (_entered(backward, ENTER_BACK_NS),)

    def _chain(
        self, chain: tuple[str, ...], elements: int, rows: int, work: str
    ) -> tuple[Step, ...]:
        return tuple(
            self.pointwise(
                f"chain.{number}", operator, rows if operator in ROWS else elements, work
            )
            for number, operator in enumerate(chain)
        )

    def gather(self, name: str, rows: int, width: int, table: int) -> Node:
        """Rows of a table of embeddings; its gradient is as large as the table."""
        make = self.operators.pointwise
        forward = make("gather", ("aten::embedding",), rows * width, "gather")
        back = ("aten::embedding_dense_backward",)
        backward = (
            make("zero", ("aten::zeros",), table * width, "sum"),
            make("scatter", back, rows * width, "scatter"),
        )
        parameters = (Parameter("weight", table * width),)
        return Node(name, "EmbeddingBackward0", (forward,), backward, parameters)

    def loss(self, name: str, rows: int, classes: int) -> Node:
        """Cross entropy."""
        make, elements = self.operators.pointwise, rows * classes
        forward = (
            make("log_softmax", ("aten::log_softmax",), elements, "log_softmax"),
            make("nll", ("aten::nll_loss_nd",), rows, "sum"),
        )
        backward = (
            make("nll", ("aten::nll_loss_backward",), elements, "sum"),
            make(
                "log_softmax", ("aten::_log_softmax_backward_data",), elements, "log_softmax_back"
            ),
        )
        return Node(name, "LogSoftmaxBackward0", forward, backward)


def _entered(launch: Launch, time_ns: int) -> Launch:
    """Add the way into compiled code, which does not grow with the work."""
    return replace(launch, cost=replace(launch.cost, fixed_ns=time_ns))


def _only(prefix: str, work: str, limited: bool) -> str:
    return prefix + work if limited else work
