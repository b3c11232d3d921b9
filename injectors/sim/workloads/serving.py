"""Inference servers: engines of one or more ranks each, behind a router."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from injectors.sim.job import ONE, Job, Loader, Places
from injectors.sim.machine import Machine
from injectors.sim.program import Program
from injectors.sim.serving.model import USED_Q16, Model
from injectors.sim.serving.part import engine_part
from injectors.sim.serving.program import compile_engine
from injectors.sim.workloads.base import SimulatedWorkload


class LlmServing(SimulatedWorkload):
    """A decoder, its engines (vLLM's names where it has them) and their clients.

    Ranks are shared out evenly to `engines`, each of which has a host of its own and splits every
    layer over its ranks. `kv_blocks` are an engine's blocks of 16 tokens. Lengths are means in
    tokens; `prefix_share` of a prompt is its tenant's, and `document_share` of the requests have
    long prompts without a prefix. The answers of
    `constrained_share` follow a grammar. At most `max_concurrency` requests are open.
    """

    title: ClassVar[str] = "Large language model server with continuous batching"
    kind: ClassVar[Literal["training", "inference"]] = "inference"
    disaggregated: ClassVar[bool] = False
    layers: PositiveInt = 24
    hidden: PositiveInt = 4096
    heads: PositiveInt = 32
    kv_heads: PositiveInt = 8
    intermediate: PositiveInt = 14_336
    vocabulary: PositiveInt = 128_256
    engines: PositiveInt = 1
    max_num_seqs: PositiveInt = 64
    max_num_batched_tokens: PositiveInt = 1024
    kv_blocks: PositiveInt = 2560
    requests_per_s: PositiveFloat = 1000.0
    max_concurrency: PositiveInt = 48
    tenants: PositiveInt = 64
    prompt_tokens: PositiveInt = 512
    prefix_share: float = Field(default=0.75, ge=0, le=0.95)
    document_share: float = Field(default=0.03, ge=0, le=1)
    document_tokens: PositiveInt = 2048
    generation_tokens: PositiveInt = 192
    constrained_share: float = Field(default=0.2, ge=0, le=1)
    draft_tokens: NonNegativeInt = 0
    draft_acceptance: float = Field(default=0.7, ge=0, le=1)
    tokens_per_step: PositiveInt = 480

    def places(self, ranks: int, machine: Machine) -> Places:
        """Give each engine as many ranks; raises ValueError with what must hold of them."""
        tensor = self._tensor(ranks)
        if tensor > machine.gpus_per_host:
            raise ValueError(
                f"ranks of an engine must be at most {machine.gpus_per_host}, got {tensor}"
            )
        return Places(ranks=ranks, per_host=tensor, data=self.engines, tensor=tensor)

    def _tensor(self, ranks: int) -> int:
        if ranks % self.engines:
            raise ValueError(f"ranks must be a multiple of {self.engines} engines, got {ranks}")
        tensor = ranks // self.engines
        if self.heads % tensor or self.intermediate % tensor:
            raise ValueError(f"ranks of an engine must divide {self.heads} heads, got {tensor}")
        return tensor

    def check_ranks(self, ranks: int) -> None:
        """Raise ValueError where engines can't have as many ranks each."""
        self._tensor(ranks)

    def parallelism(self, ranks: int) -> dict[str, int]:
        """Engines are replicas; within one each layer is split."""
        return {"data": self.engines, "tensor": self._tensor(ranks)}

    def model(self, tensor: int) -> Model:
        """Return the model as each of `tensor` ranks has it."""
        return Model(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            intermediate=self.intermediate,
            vocabulary=self.vocabulary,
            tensor=tensor,
        )

    def set_up(self, job: Job) -> None:
        """Fill in the engines' settings and their clients."""
        serving = job.serving
        serving.engines = self.engines
        serving.disaggregated = self.disaggregated
        serving.requests_per_s_q16 = round(self.requests_per_s * ONE)
        serving.prompt_tokens, serving.answer_tokens = self.prompt_tokens, self.generation_tokens
        serving.long_prompt_q16 = round(self.document_share * ONE)
        serving.long_prompt_tokens = self.document_tokens
        serving.prefix_share_q16 = round(self.prefix_share * ONE)
        serving.tenants, serving.concurrency = self.tenants, self.max_concurrency
        serving.kv_blocks, serving.max_running = self.kv_blocks, self.max_num_seqs
        serving.chunk_tokens = self.max_num_batched_tokens
        serving.structured_q16 = round(self.constrained_share * ONE)
        serving.draft_tokens = self.draft_tokens
        serving.acceptance_q16 = round(self.draft_acceptance * ONE)
        serving.tokens_per_step = self.tokens_per_step
        job.gpus.memory_used_q16 = USED_Q16
        self._set_up_host(job)

    def _set_up_host(self, job: Job) -> None:
        """Nothing is loaded in batches; the engine's process collects garbage now and then."""
        job.loader = Loader(workers=0, decode_ns=0, read_bytes=0, requests=0)
        job.host.gc_ns, job.host.gc_every = 3_000_000, 300

    def compile(self, job: Job) -> Program:
        """Write a step of the first engine; all have the same."""
        return compile_engine(engine_part(job, 0), self.model(job.places.tensor))


class DisaggregatedServing(LlmServing):
    """The first half of the engines compute prompts, the others continue the answers.

    Keys and values of a prompt are sent from one pool to the other.
    """

    title: ClassVar[str] = "Large language model server with apart prefill and decode pools"
    disaggregated: ClassVar[bool] = True
    engines: int = Field(default=2, ge=2)
