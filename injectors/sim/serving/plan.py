"""What one engine step computes, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from injectors.sim.serving.request import Request


@dataclass(slots=True)
class Part:
    """A request's share in a step.

    Attributes:
        count: Known tokens to compute; `drafts` further ones are drafted and verified.
        complete: Whether it yields a token: all that is known so far is then computed.
    """

    request: Request
    count: int
    drafts: int
    complete: bool


@dataclass(slots=True)
class Plan:
    """One engine step; token counts are sums over its requests.

    Attributes:
        decoding: Requests that continue their answer by one token, without drafts.
        parts: All others.
        prefill_tokens: Of prompts, or computed before and lost.
        decode_tokens: That continue an answer, drafts included.
        context_tokens: Keys and values that decoding tokens read.
        attention_pairs: Pairs of tokens whose attention prefilling computes.
        answers: Requests that get a token; `constrained` of them follow a grammar, of which
            `unindexed` lack an index.
        draft_tokens: Drafted; `draft_passes` at most by one request.
        started: Requests that take part for the first time.
        queries, hits: Prompt tokens looked up in the prefix cache, and found.
    """

    decoding: list[Request] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    prefill_tokens: int = 0
    decode_tokens: int = 0
    context_tokens: int = 0
    attention_pairs: int = 0
    answers: int = 0
    constrained: int = 0
    unindexed: int = 0
    draft_tokens: int = 0
    draft_passes: int = 0
    started: int = 0
    preemptions: int = 0
    queries: int = 0
    hits: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to compute."""
        return bool(self.decoding or self.parts)

    @property
    def tokens(self) -> int:
        """Tokens that the model computes."""
        return self.prefill_tokens + self.decode_tokens

    def decode(self, request: Request, drafts: int = 0) -> None:
        """Let a request continue its answer by one token and `drafts` guesses."""
        if drafts:
            self.parts.append(Part(request, 1, drafts, True))
            self.draft_tokens += drafts
            self.draft_passes = max(self.draft_passes, drafts)
        else:
            self.decoding.append(request)
        self.decode_tokens += 1 + drafts
        self.context_tokens += request.known + drafts
        self._answer(request)

    def prefill(self, request: Request, count: int) -> None:
        """Let a request compute `count` of the tokens that it knows."""
        complete = request.computed + count == request.known
        self.parts.append(Part(request, count, 0, complete))
        # The last token of an answer in progress decodes, whatever is computed again before it.
        again = 1 if complete and request.generated else 0
        self.decode_tokens += again
        self.prefill_tokens += count - again
        self.attention_pairs += count * request.computed + (count * (count + 1) >> 1)
        if complete:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        self.answers += 1
        if request.constrained:
            self.constrained += 1
            self.unindexed += not request.indexed
