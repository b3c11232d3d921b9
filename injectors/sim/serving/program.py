"""One step of an inference engine as an op program over its tensor-parallel ranks.

The program holds two ways through the model: "graph", a replayed CUDA graph that decodes, and
"eager", compiled code whose kernels are launched one by one, for steps with prompts in them. A
step takes one of them; likewise drafts, grammar masks and logits are there only in steps that
need them.

The engine's own process stands still for `idle` until there is something to do, and for
`schedule` while it schedules, detokenises and fills in grammar masks; its workers wait with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from injectors.sim.builder import Builder
from injectors.sim.job import Job
from injectors.sim.launches import Launch
from injectors.sim.program import Kind, Program
from injectors.sim.serving.kernels import ROWS, TOKENS, LayerKernels
from injectors.sim.serving.model import Model
from injectors.sim.serving.writer import NOTHING, TENSOR, Way

BEGIN, SCHEDULED, END = "begin", "scheduled", "end"
COMMON_PAUSES = ("suspend", "gc", "poll", "retry", "extra", "recompile", "autotune", "metric")
PREPARE_NS, OUTPUT_NS = 250_000, 120_000
GRAMMAR = "void xgrammar::LogitsBitmaskKernel<__nv_bfloat16, int4, 32>"
EMBEDDING = "void at::native::(anonymous namespace)::indexSelectLargeIndex"


def compile_engine(job: Job, model: Model) -> Program:
    """Write a step of one engine, whose ranks are all of the job's."""
    return _Writer(job, model).write()


class _Writer:
    def __init__(self, job: Job, model: Model) -> None:
        self._job, self._model = job, model
        self._builder = Builder(job)
        self._launches = self._builder.launches
        if model.tensor > 1:
            self._builder.members(TENSOR)

    def write(self) -> Program:
        """Write the whole step."""
        builder = self._builder
        self._host_side()
        with builder.under("execute", "execute_model"):
            self._prepare()
            for number in range(self._job.serving.draft_tokens):
                with builder.under(f"draft{number}", "gpu_model_runner: draft"):
                    self._draft()
            with builder.under("graph", "gpu_model_runner: forward"):
                self._decode()
            with builder.under("eager", "gpu_model_runner: forward"):
                self._eager()
            with builder.under("sample", "gpu_model_runner: sample"):
                self._sample()
            with builder.under("output", "gpu_model_runner: bookkeep"):
                builder.sync("wait")
                builder.host("output", OUTPUT_NS)
        builder.mark(END)
        return builder.program

    def _host_side(self) -> None:
        builder = self._builder
        self._pause("idle")
        builder.mark(BEGIN)
        for name in COMMON_PAUSES:
            builder.pause(name)
        self._pause("schedule")
        self._pause("jit")
        builder.mark(SCHEDULED)

    def _pause(self, name: str) -> None:
        """Append a pause that only engines have."""
        builder = self._builder
        row = builder.program.row(builder.program.pauses, name)
        with builder.under("pause"):
            builder.add(Kind.PAUSE, name, label=NOTHING, pause=row)

    def _prepare(self) -> None:
        builder = self._builder
        with builder.under("prepare", "gpu_model_runner: preprocess"):
            builder.host("inputs", PREPARE_NS)
            for name, size in (("tokens", 8 * TOKENS), ("slots", 8 * TOKENS), ("blocks", 2**17)):
                builder.copy(name, size, "HtoD")

    def _way(self, name: str) -> Way:
        return Way(name, self._builder, self._model)

    def _draft(self) -> None:
        """One pass of the draft model, as deep as its cost says: one token of each request."""
        share, way, model = self._job.serving.draft_cost_q16, self._way("draft"), self._model
        self._replay(way, max(1, model.layers * share >> 16))
        words = max(1, model.vocabulary // model.tensor * share >> 16)
        way.kernel(self._layer().product("logits", words, model.hidden, ROWS))

    def _decode(self) -> None:
        self._replay(self._way("graph"), self._model.layers)

    def _replay(self, way: Way, layers: int) -> None:
        """Replay the graph of so many layers, which holds no prompts."""
        parts = [[x for x in part if x.work != "prefill"] for part, _ in self._parts(self._layer())]
        way.replay(layers * sum(map(len, parts)))
        self._write_layers(way, layers)

    def _eager(self) -> None:
        """Launch every kernel; layers that are not compiled by operators of their own."""
        model, way = self._model, self._way("eager")
        moved = 2 * model.hidden * TOKENS * self._launches.costs.element_bytes
        ops = ("aten::embedding", "aten::index_select")
        way.kernel(self._launches.named("embedding", EMBEDDING, moved, ops, family="embedding"))
        self._write_layers(way, model.layers, prompts=True)

    def _write_layers(self, way: Way, layers: int, prompts: bool = False) -> None:
        compiled = layers * self._job.framework.compiled_share_q16 >> 16
        for number in range(layers):
            layer = self._layer(eager=prompts and number >= compiled)
            with self._builder.under(f"layer{number}"):
                for part, reduced in self._parts(layer):
                    for launch in part:
                        if prompts or launch.work != "prefill":
                            way.kernel(launch)
                    way.reduce(reduced)

    def _layer(self, eager: bool = False) -> LayerKernels:
        fused = self._job.framework.fused and not eager
        return LayerKernels(self._model, self._launches, fused, eager)

    def _parts(self, layer: LayerKernels) -> list[tuple[list[Launch], str]]:
        """The kernels of a layer up to each sum over ranks, and that sum's name."""
        attention = [*layer.before_attention(), *layer.attention(), *layer.after_attention()]
        return [(attention, "o_proj.sum"), ([*layer.mlp()], "down.sum")]

    def _sample(self) -> None:
        """From hidden states to tokens on the host."""
        builder, model, launches = self._builder, self._model, self._launches
        words = model.vocabulary // model.tensor
        way = self._way("sample")
        way.reading(self._layer().product("logits", words, model.hidden, ROWS))
        with builder.under("grammar"):
            builder.copy("mask", ROWS * model.vocabulary // 8, "HtoD", work="copy.mask")
        mask = launches.named(
            "grammar", GRAMMAR, 2 * ROWS * words, ("xgrammar::apply_token_bitmask",)
        )
        self._way("apply").kernel(replace(mask, work="mask"))
        for launch in self._choosing(ROWS * words):
            way.kernel(launch)
        for number in range(self._job.framework.read_backs):
            builder.read_back(f"read_back{number}")
        builder.copy("tokens", 8 * ROWS, "DtoH")

    def _choosing(self, elements: int) -> Iterator[Launch]:
        """From logits to tokens."""
        launches = self._launches
        yield launches.elementwise("float", elements, ("aten::to", "aten::copy_"), tensors=2)
        yield launches.reduction("softmax", elements, ("aten::softmax",), "softmax_warp_forward")
        yield launches.elementwise("exponential", elements, ("aten::exponential_",), tensors=1)
        yield launches.reduction("argmax", elements, ("aten::argmax",), "ArgMaxOps")
