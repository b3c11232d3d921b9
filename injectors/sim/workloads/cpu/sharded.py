"""The real mixture of experts and click model as simulated jobs on CPU cores."""

from __future__ import annotations

from dataclasses import replace

from injectors.sim.builder import Builder
from injectors.sim.job import Job
from injectors.sim.launches import Exchange, Launch
from injectors.sim.program import Program, Stream
from injectors.sim.tape import Layer, Node, Parameter
from injectors.sim.workloads.cpu.averaging import SHARD
from injectors.sim.workloads.cpu.blocks import Parts
from injectors.sim.workloads.cpu.operators import Operators, twin_of
from injectors.sim.workloads.cpu.step import CpuStep
from injectors.sim.workloads.cpu.transformer import Tokens, Transformer
from injectors.workloads.language_model import LanguageModel
from injectors.workloads.mixture_of_experts import MixtureOfExperts
from injectors.workloads.recommendation import Recommendation

COUNT_BYTES, INDEX_BYTES, FLOAT_BYTES = 8, 8, 4
DENSE_FEATURES = 13
SGD_NS = 7_000  # of an update, for each parameter
COALESCED = 4  # times that the update goes through a sparse gradient: sorting, adding up, squares


def compile_mixture(job: Job, model: MixtureOfExperts) -> Program:
    """Write the step of the mixture of experts."""
    operators, builder = Operators(twin_of(job)), Builder(job)
    ranks = job.places.ranks
    step = SgdStep(
        builder,
        operators,
        lambda rows: mixture_layers(operators, model, rows * model.sequence_length, ranks),
        model.batch_size,
    )
    step.write()
    return builder.program


def mixture_layers(
    operators: Operators, model: MixtureOfExperts, tokens: int, ranks: int
) -> list[Layer]:
    """Return embedding, blocks of attention and experts, and the head."""
    plain = LanguageModel(
        layers=model.layers,
        d_model=model.d_model,
        heads=model.heads,
        sequence_length=model.sequence_length,
        batch_size=model.batch_size,
        vocabulary=model.vocabulary,
        attention="sdpa",
    )
    batch = Tokens(tokens, model.sequence_length)
    first, *blocks, last = Transformer(plain, operators).layers(batch)
    parts = Parts(operators)
    mixed = [
        Layer(block.name, (*block.nodes[:6], *_experts(parts, model, tokens, ranks)))
        for block in blocks
    ]
    return [first, *mixed, last]


def _experts(parts: Parts, model: MixtureOfExperts, tokens: int, ranks: int) -> tuple[Node, ...]:
    """Tokens travel to the experts that a router picks for them, and back."""
    width, local = model.d_model, model.experts // ranks
    size = tokens * width * FLOAT_BYTES
    order = parts.pointwise("order", "gather", tokens * width)
    route = parts.linear("router", tokens, width, model.experts, bias=False)
    counts = _swap("counts", model.experts * COUNT_BYTES)
    there, back = _swap("there", size), _swap("back", size)
    nodes = [
        route,
        Node("counts", "", (counts,)),
        Node("there", "_AllToAllBackward", (order, there), (there, order)),
    ]
    for number in range(local):
        nodes += _expert(parts, number, tokens // local, width, model.hidden)
    return (
        *nodes,
        Node("back", "_AllToAllBackward", (back, order), (order, back)),
        parts.add("residual2", tokens * width),
    )


def _expert(parts: Parts, number: int, tokens: int, width: int, hidden: int) -> list[Node]:
    nodes = (
        parts.linear(f"expert{number}.up", tokens, width, hidden),
        parts.gelu(f"expert{number}.gelu", tokens * hidden),
        parts.linear(f"expert{number}.down", tokens, hidden, width),
    )
    return [_kept_apart(node, "experts") for node in nodes]


def compile_recommendation(job: Job, model: Recommendation) -> Program:
    """Write the step of the click model."""
    operators, builder = Operators(twin_of(job)), Builder(job)
    step = ClickStep(
        builder, operators, lambda count: click_layers(operators, model, count), model.batch_size
    )
    step.values = model.batch_size * model.tables * model.lookups * model.width
    step.write()
    return builder.program


def click_layers(operators: Operators, model: Recommendation, samples: int) -> list[Layer]:
    """Return look-ups in the shards, the sums of rows, and the dense layers."""
    parts, vectors = Parts(operators), model.tables + 1
    rows = samples * model.tables * model.lookups
    values, pairs = rows * model.width, vectors * (vectors - 1) // 2
    shard = Parameter("weight", model.tables * model.rows * model.width, SHARD)
    order = parts.pointwise("order", "gather", values)
    found = replace(parts.pointwise("lookup", "gather", values), work="rows")
    scatter = replace(parts.pointwise("scatter", "copy", values), work="rows")
    size = values * FLOAT_BYTES
    sums = parts.pointwise("sums", "add", values)
    nodes = (
        Node("counts", "", (_swap("counts", 2 * COUNT_BYTES), _swap("ids", rows * INDEX_BYTES))),
        Node("lookup", "EmbeddingBackward0", (found,), (scatter,), (shard,)),
        Node(
            "rows",
            "_AllToAllBackward",
            (_swap("rows", size), order),
            (order, _swap("gradients", size)),
        ),
        Node("sums", "SumBackward1", (sums,), (replace(sums),)),
    )
    pairwise = operators.product("bmm", ("aten::bmm",), (vectors, vectors, model.width), samples)
    dense = (
        parts.linear("bottom1", samples, DENSE_FEATURES, model.hidden),
        parts.linear("bottom2", samples, model.hidden, model.width),
        Node("pairs", "BmmBackward0", (pairwise,), (pairwise, replace(pairwise, name="bmm_t"))),
        parts.linear("top1", samples, model.width + pairs, model.hidden),
        parts.linear("top2", samples, model.hidden, 1),
        parts.loss("loss", samples, 1),
    )
    return [Layer("embedding", nodes), Layer("dense", dense)]


def _swap(name: str, size: int) -> Exchange:
    return Exchange(name, "all_to_all", size, "world", Stream.EXPERT_PARALLEL)


def _kept_apart(node: Node, work: str) -> Node:
    """Let each rank have a node's parameters for itself, and work as it is given tokens."""
    forward, backward = (
        tuple(replace(s, work=work) if isinstance(s, Launch) else s for s in steps)
        for steps in (node.forward, node.backward)
    )
    parameters = tuple(replace(p, group=SHARD) for p in node.parameters)
    return replace(node, forward=forward, backward=backward, parameters=parameters)


class SgdStep(CpuStep):
    """A step that ends with an update of few operators for each parameter."""

    def update(self) -> None:
        """Write the update."""
        with self.builder.under("optimizer"):
            first = len(self.builder.program.ops)
            self.builder.host("sgd", SGD_NS * len(self.parameters), ("aten::_foreach_add_",))
            self.builder.span("Optimizer.step#SGD.step", first)


class ClickStep(SgdStep):
    """A step that ends with Adagrad on sparse gradients of the rows that a rank serves."""

    values: int = 0

    def update(self) -> None:
        """Write the update."""
        super().update()
        with self.builder.under("adagrad"):
            for number in range(COALESCED):
                launch = self.operators.pointwise(
                    f"coalesce{number}", ("aten::coalesce",), self.values, "scatter", "rows"
                )
                self.builder.launch(launch)
