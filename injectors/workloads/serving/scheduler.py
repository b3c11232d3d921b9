"""Continuous batching: which requests take part in an engine step, and with how many tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from injectors.workloads.serving.blocks import BlockPool, block_keys
from injectors.workloads.serving.request import Request


@dataclass(frozen=True)
class Limits:
    """What the engine may do in a step; vLLM's names.

    Attributes:
        max_num_seqs: Requests that run at the same time.
        max_num_batched_tokens: Tokens of a step; longer prompts are computed in chunks.
        kv_blocks: Blocks of the pool that may hold anything; the longest request must fit.
        reserve: Whether admission takes the blocks of the whole answer at once, so that
            nothing is ever preempted.
        draft_tokens: Tokens to draft before each decode.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_blocks: int = 1 << 30
    reserve: bool = False
    draft_tokens: int = 0


@dataclass(frozen=True)
class Part:
    """A request's share in a step.

    Attributes:
        count: Tokens to compute, the last `drafts` of them drafted.
        complete: Whether it yields a token: all that is known so far is then computed.
        decode_tokens: Tokens that continue an answer. The others belong to a prompt, or were
            computed before and lost.
    """

    request: Request
    count: int
    drafts: int
    complete: bool
    decode_tokens: int


@dataclass
class Plan:
    """One engine step."""

    parts: list[Part] = field(default_factory=list)
    tokens: int = 0
    preemptions: int = 0
    queries: int = 0
    hits: int = 0

    def add(self, request: Request, count: int, drafts: int = 0) -> None:
        """Let a request take part."""
        complete = request.computed + count == len(request.tokens)
        decodes = 1 + drafts if complete and request.generated else 0
        self.parts.append(Part(request, count + drafts, drafts, complete, decodes))
        self.tokens += count + drafts

    @property
    def decode_tokens(self) -> int:
        """Tokens that continue an answer."""
        return sum(part.decode_tokens for part in self.parts)


class Scheduler:
    """Queue, running requests and their blocks; after vLLM's scheduler, first come first served.

    Running requests come first, then the queue as far as tokens, seats and blocks go. Prompts
    are cut to what is left of the step's tokens, so that they share steps with decoding;
    requests that are not `chunked` have theirs computed whole, in a step without decoding as
    soon as their turn comes. A running request that finds no block takes those of the one that
    was admitted last, which goes back to the head of the queue and computes everything again.
    """

    def __init__(self, pool: BlockPool, block_size: int) -> None:
        self.pool, self._size = pool, block_size
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def plan(self, limits: Limits) -> Plan:
        """Choose what the next step computes."""
        self.pool.restrict(limits.kv_blocks)
        plan = Plan()
        self._admit(plan, limits, chunked=False)
        if plan.parts:
            return plan
        self._continue(plan, limits)
        if not plan.preemptions:
            self._admit(plan, limits, chunked=True)
        return plan

    def _continue(self, plan: Plan, limits: Limits) -> None:
        for request in list(self.running):
            count = self._count(request, plan, limits)
            drafts = self._drafts(request, count, limits)
            while count and request in self.running:
                if self._grow(request, request.computed + count + drafts):
                    plan.add(request, count, drafts)
                    break
                self._preempt(self.running[-1], plan)

    def _count(self, request: Request, plan: Plan, limits: Limits) -> int:
        """Return how many of its known tokens a request should compute."""
        if not request.cached:
            request.computed = 0
            return len(request.tokens)
        count = len(request.tokens) - request.computed
        if not request.chunked:
            return count
        return max(0, min(count, limits.max_num_batched_tokens - plan.tokens))

    def _drafts(self, request: Request, count: int, limits: Limits) -> int:
        """Return how many tokens to draft: none for prompts, or where a grammar has its say."""
        decodes = request.generated and request.computed + count == len(request.tokens)
        if count != 1 or not decodes or request.constrained:
            return 0
        return min(limits.draft_tokens, request.remaining - 1)

    def _admit(self, plan: Plan, limits: Limits, chunked: bool) -> None:
        """Let requests from the head of the queue run, as long as they are of the kind asked."""
        while self.waiting and len(self.running) < limits.max_num_seqs:
            request = self.waiting[0]
            if request.chunked != chunked:
                break
            if chunked and plan.tokens >= limits.max_num_batched_tokens:
                break
            shared = self._shared(request)
            kept = request.longest if limits.reserve else len(request.tokens)
            blocks = self.pool.take(self._blocks(kept) - len(shared), shared)
            if blocks is None:
                break
            self.running.append(self.waiting.popleft())
            request.blocks, request.computed = blocks, len(shared) * self._size
            if request.cached:
                plan.queries += len(request.tokens)
                plan.hits += request.computed
            if not request.preemptions:
                request.cached_tokens = request.computed
            plan.add(request, self._count(request, plan, limits))

    def _shared(self, request: Request) -> list[int]:
        """Find the blocks that hold a beginning of the request; one token is always computed."""
        if not request.cached:
            return []
        request.keys = block_keys(request.tokens, self._size, request.keys)
        return self.pool.find(request.keys[: (len(request.tokens) - 1) // self._size])

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._size)

    def _grow(self, request: Request, tokens: int) -> bool:
        missing = self._blocks(tokens) - len(request.blocks)
        blocks = self.pool.take(missing) if missing > 0 else []
        request.blocks += blocks or []
        return blocks is not None

    def _preempt(self, request: Request, plan: Plan) -> None:
        self.running.remove(request)
        self.pool.release(request.blocks)
        request.blocks, request.computed = [], 0
        request.preemptions += 1
        plan.preemptions += 1
        self.waiting.appendleft(request)

    def computed(self, request: Request, tokens: int) -> None:
        """Note that the first `tokens` tokens have keys and values, and let blocks be found."""
        known = request.computed // self._size
        request.computed = tokens
        if not request.cached or known == tokens // self._size:
            return
        request.keys = block_keys(request.tokens[:tokens], self._size, request.keys)
        for number in range(known, tokens // self._size):
            self.pool.keep(request.blocks[number], request.keys[number])

    def finish(self, request: Request) -> None:
        """Take a finished request out and its blocks back."""
        self.running.remove(request)
        self.pool.release(request.blocks)
        request.blocks = []
