"""Continuous batching: which requests take part in an engine step, and with how many tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from injectors.sim.serving.blocks import BlockPool
from injectors.sim.serving.plan import Plan
from injectors.sim.serving.request import BLOCK_TOKENS, Request

WHOLE_TOKENS = 8192  # of whole prompts that are computed in one step, unless a single one is longer


@dataclass(frozen=True)
class Limits:
    """What an engine may do; vLLM's names where it has them.

    Attributes:
        max_num_seqs: Requests that run at the same time.
        max_num_batched_tokens: Tokens of a step; longer prompts are computed in chunks.
        reserve: Whether admission takes the blocks of the whole answer at once, so that
            nothing is ever preempted.
        prefix_cache: Whether blocks of others and of before are found again.
        draft_tokens: Tokens to draft before each decode.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    reserve: bool = False
    prefix_cache: bool = True
    draft_tokens: int = 0


class Scheduler:
    """Queue, running requests and their blocks; after vLLM's scheduler, first come first served.

    Running requests come first, then the queue as far as tokens, seats and blocks go. Prompts
    are cut to what is left of the step's tokens, so that they share steps with decoding;
    requests that are not `chunked` have theirs computed whole, in a step without decoding as
    soon as their turn comes. A running request that finds no block takes those of the one that
    was admitted last, which goes back to the head of the queue and computes everything again.
    """

    def __init__(self, pool: BlockPool, limits: Limits) -> None:
        self.pool, self._limits = pool, limits
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    @property
    def open(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running)

    def plan(self) -> Plan:
        """Choose what the next step computes."""
        plan = Plan()
        if self.waiting and _whole(self.waiting[0]):
            self._admit(plan, whole=True)
            if plan:
                return plan
        self._continue(plan)
        if not plan.preemptions and self.waiting:
            self._admit(plan, whole=False)
        return plan

    def _continue(self, plan: Plan) -> None:
        running, drafting, place = self.running, self._limits.draft_tokens, 0
        while place < len(running):
            request = running[place]
            place += 1
            known = request.known
            decodes = known - request.computed == 1 and known > request.prompt_tokens
            if drafting or not decodes or not request.cached:
                self._continue_one(request, plan)
            elif known <= len(request.keys) * BLOCK_TOKENS or self._fits(request, known, plan):
                plan.decode(request)

    def _continue_one(self, request: Request, plan: Plan) -> None:
        """Let a request go on that drafts, or whose prompt is not yet computed."""
        if not request.cached:
            request.computed = 0
        count = request.known - request.computed
        drafts = self._drafts(request) if count == 1 else 0
        if request.chunked and request.cached and count > 1:
            count = max(0, min(count, self._limits.max_num_batched_tokens - plan.tokens))
        if count and self._fits(request, request.computed + count + drafts, plan):
            if count == 1 and request.generated:
                plan.decode(request, drafts)
            else:
                plan.prefill(request, count)

    def _drafts(self, request: Request) -> int:
        """Return how many tokens to draft: none where a grammar has its say."""
        if not self._limits.draft_tokens or request.constrained or not request.generated:
            return 0
        return min(self._limits.draft_tokens, request.longest - request.known - 1)

    def _fits(self, request: Request, tokens: int, plan: Plan) -> bool:
        """Lend it blocks for so many tokens, evicting later requests, or at last itself."""
        while (missing := -(-tokens // BLOCK_TOKENS) - len(request.keys)) > 0:
            blocks = self.pool.take(missing)
            if blocks is not None:
                request.keys += blocks
                return True
            last = self.running.pop()
            self._preempt(last, plan)
            if last is request:
                return False
        return True

    def _preempt(self, request: Request, plan: Plan) -> None:
        self.release(request)
        request.computed = request.registered = 0
        request.preemptions += 1
        plan.preemptions += 1
        self.waiting.appendleft(request)

    def _admit(self, plan: Plan, whole: bool) -> None:
        """Let requests from the head of the queue run, as long as they are of the kind asked."""
        limits = self._limits
        most = WHOLE_TOKENS if whole else limits.max_num_batched_tokens
        while self.waiting and len(self.running) < limits.max_num_seqs and plan.tokens < most:
            request = self.waiting[0]
            if _whole(request) != whole or (whole and _exceeds(request, plan, most)):
                break
            if not self._enter(request, plan):
                break
            count = request.known - request.computed
            if count == 1 and request.generated:
                plan.decode(request, self._drafts(request))
            else:
                # Without a cache everything is computed at once, step after step.
                cut = request.cached and not whole
                plan.prefill(request, min(count, most - plan.tokens) if cut else count)

    def _enter(self, request: Request, plan: Plan) -> bool:
        """Admit the head of the queue if there are blocks for it."""
        shared = self._shared(request)
        kept = request.longest if self._limits.reserve else request.known
        fresh = -(-kept // BLOCK_TOKENS) - len(shared)
        leave = self.pool.watermark if self.running else 0
        blocks = self.pool.take(fresh, shared, leave)
        if blocks is None:
            return False
        self.running.append(self.waiting.popleft())
        request.keys = blocks
        # Keys and values that came from another engine are there already.
        request.registered = len(shared)
        if not request.computed:
            request.computed = len(shared) * BLOCK_TOKENS
            self._count_hits(request, plan)
        return True

    def _count_hits(self, request: Request, plan: Plan) -> None:
        if request.cached and self._limits.prefix_cache:
            plan.queries += request.known
            plan.hits += request.computed
        if not request.preemptions:
            plan.started += 1
            request.cached_tokens = request.computed

    def _shared(self, request: Request) -> list[int]:
        """Find the blocks that hold a beginning of the request; one token is always computed."""
        if not request.cached or request.computed or not self._limits.prefix_cache:
            return []
        keys = [request.key(block) for block in range((request.known - 1) // BLOCK_TOKENS)]
        return keys[: self.pool.find(keys)]

    def computed(self, request: Request, tokens: int) -> None:
        """Note that the first `tokens` tokens have keys and values, and let blocks be found."""
        request.computed = tokens
        full = tokens // BLOCK_TOKENS
        if full > request.registered and request.cached and self._limits.prefix_cache:
            for block in range(request.registered, full):
                self.pool.keep(request.keys, block, request.key(block))
            request.registered = full

    def finish(self, request: Request) -> None:
        """Take a finished request out; its blocks are given back by `release`."""
        self.running.remove(request)

    def release(self, request: Request) -> None:
        """Take a request's blocks back."""
        self.pool.release(request.keys)
        request.keys = []


def _whole(request: Request) -> bool:
    """Whether what a waiting request lacks must be computed at once, without decoding."""
    return not request.chunked and request.known - request.computed > 1


def _exceeds(request: Request, plan: Plan, most: int) -> bool:
    return bool(plan) and plan.tokens + request.known > most
