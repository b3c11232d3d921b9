"""An inference server: continuous batching, keys and values in blocks, prefix reuse.

**What a step is.** The label rule compares wall time for a fixed amount of work, and an engine
step is none: a fault may need more engine steps for the same answers, or fewer tokens in each.
So a step of this program is a fixed number of answer tokens sent to clients. The clients keep
the server busy (a Poisson process faster than it can serve, at most `max_concurrency` requests
open), so that time lost anywhere, in longer engine steps, in more of them, or in seats and
blocks that stay empty, is time lost per token. Lengths and kinds of requests are drawn from
decks, so that any twenty requests in a row ask for nearly the same work.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from injectors.workloads.base import Context, Program, Workload


class InferenceServer(Workload):
    """The model, its engines (vLLM's names where it has them) and their clients.

    `kv_blocks` are an engine's blocks of `block_size` tokens. Of the requests, `shared_share`
    begin with one of `tenants` system prompts, `document_share` have long prompts, and the
    answers of `constrained_share` follow a grammar. Lengths are medians (prompts) and means
    (answers), in tokens. `compile_sampling` names the backend of torch.compile for the step from
    logits to tokens; "no" leaves temperatures out, which change no answer.
    """

    title: ClassVar[str] = "Transformer inference server with continuous batching"
    kind: ClassVar[Literal["training", "inference"]] = "inference"
    layers: PositiveInt = 2
    d_model: PositiveInt = 128
    heads: PositiveInt = 4
    vocabulary: int = Field(default=512, ge=256)
    engines: PositiveInt = 1
    max_num_seqs: PositiveInt = 8
    max_num_batched_tokens: PositiveInt = 64
    block_size: PositiveInt = 8
    kv_blocks: PositiveInt = 256
    draft_layers: PositiveInt = 1
    requests_per_s: PositiveFloat = 5000.0
    max_concurrency: PositiveInt = 12
    tenants: PositiveInt = 4
    prefix_tokens: NonNegativeInt = 48
    prompt_tokens: PositiveInt = 24
    document_tokens: PositiveInt = 160
    generation_tokens: PositiveInt = 16
    shared_share: float = Field(default=0.5, ge=0, le=1)
    document_share: float = Field(default=0.1, ge=0, le=1)
    constrained_share: float = Field(default=0.25, ge=0, le=1)
    tokens_per_step: PositiveInt = 96
    compile_sampling: Literal["no", "eager", "aot_eager"] = "no"

    @property
    def settle_steps(self) -> int:
        """Steps until the requests that were open at a change are served twice over."""
        open_tokens = 2 * self.max_concurrency * self.generation_tokens
        return -(-open_tokens // self.tokens_per_step) + 2

    def build(self, context: Context) -> Program:
        """Make the model, the engines and the clients."""
        from injectors.workloads.serving.program import ServerProgram

        return ServerProgram(self, context)
