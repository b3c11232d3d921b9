"""The transformer of the real language models, as layers of operators on a CPU core."""

from __future__ import annotations

from dataclasses import dataclass, replace

from injectors.sim.launches import Launch
from injectors.sim.tape import Layer, Node, Parameter, Step
from injectors.sim.workloads.cpu.blocks import Parts
from injectors.sim.workloads.cpu.operators import Operators
from injectors.workloads.language_model import LanguageModel

UNLIMITED = 10**6
SQUARES = "lengths.attention"  # row of work that goes with the squared lengths
SDPA = "aten::scaled_dot_product_attention"


@dataclass(frozen=True)
class Tokens:
    """A batch: `count` tokens in sequences of `length`, on average, padding included."""

    count: int
    length: int


class Transformer:
    """Makes the layers for a batch, each in the form that the job's knobs ask for."""

    def __init__(self, model: LanguageModel, operators: Operators) -> None:
        self._model, self._operators = model, operators
        self._twin = operators.twin

    def layers(self, tokens: Tokens) -> list[Layer]:
        """Return embedding, blocks and head."""
        blocks = [self.block(number, tokens) for number in range(self._model.layers)]
        return [self.embedding(tokens), *blocks, self.head(tokens)]

    def embedding(self, tokens: Tokens) -> Layer:
        """Words and positions."""
        parts, width = Parts(self._operators), self._model.d_model
        positions = Parameter("positions", self._model.longest * width)
        add = parts.add("sum", tokens.count * width)
        nodes = (
            parts.gather("words", tokens.count, width, self._model.vocabulary),
            replace(add, parameters=(positions,)),
        )
        return Layer("embedding", nodes)

    def block(self, number: int, tokens: Tokens) -> Layer:
        """Attention and feed-forward part, each behind a norm and beside a residual."""
        parts, width, count = self._parts(number), self._model.d_model, tokens.count
        nodes = (
            parts.norm("norm1", count, width),
            parts.linear("qkv", count, width, 3 * width),
            *self._attention(parts, number, tokens),
            parts.linear("projection", count, width, width),
            parts.add("residual1", count * width),
            parts.norm("norm2", count, width),
            parts.linear("up", count, width, 4 * width),
            parts.gelu("gelu", 4 * count * width),
            parts.linear("down", count, 4 * width, width),
            parts.add("residual2", count * width),
        )
        return Layer(f"layer{number}", nodes)

    def head(self, tokens: Tokens) -> Layer:
        """Final norm, logits and loss."""
        parts, model = Parts(self._operators), self._model
        nodes = (
            parts.norm("norm", tokens.count, model.d_model),
            parts.linear("logits", tokens.count, model.d_model, model.vocabulary),
            parts.loss("loss", tokens.count, model.vocabulary),
        )
        return Layer("head", nodes)

    def _parts(self, number: int) -> Parts:
        """Parts of a layer: those before a knob's number leave the usual way."""
        twin, operators = self._twin, self._operators
        if operators.precision == "bfloat16" and number < twin.number("full_precision_layers"):
            operators = replace(operators, precision="float32")
        fused = number >= twin.number("eager_layers")
        limit = twin.settings.get("recompile_limit", UNLIMITED)
        limited = fused and limit < len(self._model.lengths)
        return Parts(operators, self._model.compiled, fused, limited)

    def _attention(self, parts: Parts, number: int, tokens: Tokens) -> tuple[Node, ...]:
        if self._model.attention != "sdpa":
            return self._by_hand(parts, tokens)
        if number >= self._twin.number("math_layers"):
            return (self._library(parts, tokens),)
        return (*self._by_hand(parts, tokens), *self._safely(parts, tokens))

    def _safely(self, parts: Parts, tokens: Tokens) -> tuple[Node, ...]:
        """What the library's mathematical path does beyond ours: scale both inputs, build the mask,
        and look for rows that are hidden as a whole.
        """
        elements, scores = tokens.count * self._model.d_model, self._scores(tokens)
        scale = parts.pointwise("mul", "mul", 2 * elements)
        look = [
            parts.pointwise(f"look.{number}", kind, scores, SQUARES)
            for number, kind in enumerate(("add", "amax", "copy"))
        ]
        back = parts.pointwise("fill", "copy", scores, SQUARES)
        return (
            Node("inputs", "MulBackward0", (scale,), (replace(scale),)),
            Node("safe", "WhereBackward0", tuple(look), (back,)),
        )

    def _scores(self, tokens: Tokens) -> int:
        return tokens.count * self._model.heads * tokens.length

    def _library(self, parts: Parts, tokens: Tokens) -> Node:
        """The fused operator: it goes over blocks of the scores, and leaves hidden ones out."""
        heads, width = self._model.heads, self._model.d_model
        scores = tokens.count * heads * tokens.length
        make, count = parts.operators, tokens.count * heads // tokens.length

        def half(back: bool) -> Launch:
            times = 5 if back else 2
            shape = (tokens.length, tokens.length, width // heads)
            name = (
                SDPA if not back else "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
            )
            product = make.product("attention", (name,), shape, count)
            kind = "attention_back" if back else "attention"
            soft = make.pointwise("attention", (name,), scores, kind)
            total = product.cost.compute_ns * times // 2 + soft.cost.compute_ns
            cost = replace(product.cost, compute_ns=total)
            return replace(product, cost=cost, work=SQUARES)

        function = "ScaledDotProductFlashAttentionForCpuBackward0"
        return Node("attention", function, (half(False),), (half(True),))

    def _by_hand(self, parts: Parts, tokens: Tokens) -> tuple[Node, ...]:
        heads, width, length = self._model.heads, self._model.d_model, tokens.length
        elements, scores = tokens.count * width, tokens.count * heads * length
        count = tokens.count * heads // length

        def product(step: str, shape: tuple[int, int, int]) -> Launch:
            return parts.operators.product(step, ("aten::bmm",), shape, count, work=SQUARES)

        def copies(name: str) -> Launch:
            return parts.pointwise(name, "copy", elements)

        def over(name: str, operator: str) -> Launch:
            return parts.pointwise(name, operator, scores, SQUARES)

        inner, outer = (length, length, width // heads), (length, width // heads, length)
        first: tuple[Step, ...] = (copies("split"), product("scores", inner))
        first_back: tuple[Step, ...] = (
            product("queries", outer), product("keys", outer), copies("split")
        )  # fmt: skip
        return (
            Node("scores", "BmmBackward0", first, first_back),
            Node("scale", "MulBackward0", (over("mul", "mul"),), (over("mul", "mul"),)),
            Node("mask", "AddBackward0", (over("add", "add"),)),
            parts.softmax("softmax", scores, count * length, SQUARES),
            Node(
                "values",
                "BmmBackward0",
                (product("values", outer), copies("merge")),
                (copies("merge"), product("weights", inner), product("values", outer)),
            ),
        )
