"""An inference engine: answers, schedules, drafts, runs the model and takes its tokens."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from injectors.workloads.serving.blocks import BlockPool
from injectors.workloads.serving.grammar import Grammar
from injectors.workloads.serving.model import Chunk, Decoder, batch_of
from injectors.workloads.serving.request import Request
from injectors.workloads.serving.sampling import Sharpen
from injectors.workloads.serving.scheduler import Limits, Part, Plan, Scheduler

KEPT_STEPS = 20_000  # rows of the table `engine`; a recorded window has fewer
KEPT_REQUESTS = 5_000
COLUMNS = (
    "start_ns",
    "duration_ns",
    "scheduler_ns",
    "num_requests_running",
    "num_requests_waiting",
    "kv_cache_usage",
    "prefill_tokens",
    "decode_tokens",
    "num_preemptions",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "draft_tokens",
    "accepted_tokens",
)


@dataclass(frozen=True)
class Shape:
    """What is fixed when an engine starts: its pool, and how many layers draft."""

    blocks: int
    block_size: int
    draft_layers: int = 1


class Engine:
    """One replica: its queue, its memory, and a model that replicas may share.

    A step sends the tokens of the step before to their clients, schedules, computes masks,
    drafts, and runs the model once. Tokens are the likeliest ones, so that batching,
    preemption, prefix reuse and drafting change no answer.

    Args:
        limits: Asked before each step.
        candidates: Asked at each token for how many likely tokens its answer tells.
        sharpen: Divides logits by a request's temperature; None leaves them as they are.
    """

    def __init__(
        self,
        name: str,
        model: Decoder,
        grammar: Grammar,
        shape: Shape,
        limits: Callable[[], Limits],
        candidates: Callable[[], int],
        sharpen: Sharpen | None = None,
    ) -> None:
        self.name = name
        self._model, self._grammar, self._shape = model, grammar, shape
        self._limits, self._candidates, self._sharpen = limits, candidates, sharpen
        self._memory = model.memory(shape.blocks, shape.block_size)
        self.scheduler = Scheduler(BlockPool(shape.blocks), shape.block_size)
        self._unsent: list[Request] = []
        self._rows: deque[tuple[float, ...]] = deque(maxlen=KEPT_STEPS)
        self.done: deque[Request] = deque(maxlen=KEPT_REQUESTS)
        self.model_ns = 0

    @property
    def open(self) -> int:
        """Requests that wait, run, or have tokens yet to be sent."""
        return len(self.open_requests())

    def open_requests(self) -> list[Request]:
        """Return those requests."""
        ended = [request for request in self._unsent if not request.remaining]
        return [*self.scheduler.waiting, *self.scheduler.running, *ended]

    def submit(self, request: Request) -> None:
        """Put a request into the queue."""
        request.engine = self.name
        if request.constrained:
            request.state = self._grammar.start
        self.scheduler.waiting.append(request)

    def step(self) -> int:
        """Do one engine step; returns how many tokens clients were sent."""
        begin = time.monotonic_ns()
        sent = self._send()
        plan = self.scheduler.plan(self._limits())
        masks = {n: self._mask(part) for n, part in enumerate(plan.parts) if _masked(part)}
        level = self._level()
        now = time.monotonic_ns()
        for part in plan.parts:
            part.request.scheduled_ns = part.request.scheduled_ns or now
        if not plan.parts:
            return sent
        accepted = self._run(plan, masks)
        end = time.monotonic_ns()
        self.model_ns += end - now
        self._note(plan, (begin, end - begin, now - begin), level, accepted)
        return sent

    def _level(self) -> tuple[int, int, float]:
        """Return how many requests run and wait, and the share of the pool in use."""
        scheduler = self.scheduler
        return len(scheduler.running), len(scheduler.waiting), scheduler.pool.usage

    def _send(self) -> int:
        """Detokenise and send what the last step brought."""
        now, sent = time.monotonic_ns(), 0
        for request in self._unsent:
            for token, candidates in request.unanswered:
                request.answer_bytes += len(request.detokeniser.answer(token, candidates))
            sent += len(request.unanswered)
            request.unanswered.clear()
            request.first_token_ns = request.first_token_ns or now
            if not request.remaining:
                request.finished_ns = now
                self.done.append(request)
        self._unsent.clear()
        return sent

    def _mask(self, part: Part) -> torch.Tensor:
        return self._grammar.mask(part.request.state, part.request.indexed)

    def _run(self, plan: Plan, masks: dict[int, torch.Tensor]) -> int:
        """Compute the step and take its tokens; returns how many drafts were right."""
        drafts = self._draft(plan.parts)
        chunks = [chunk(part, guess) for part, guess in zip(plan.parts, drafts, strict=True)]
        batch = batch_of(chunks, self._shape.block_size, self._memory.device)
        rows, begins = rows_with_a_say(plan.parts, batch.rows)
        logits = self._model(batch, self._memory, rows)
        for number, mask in masks.items():
            logits[begins[number]].masked_fill_(~mask.to(logits.device), -torch.inf)
        self._apply_temperatures(logits, plan.parts, begins)
        chosen = logits.argmax(-1).tolist()
        told = list(zip(chosen, self._likeliest(logits), strict=True))
        accepted = 0
        for part, guess, begin in zip(plan.parts, drafts, begins, strict=True):
            right = agreeing(guess, chosen[begin:]) if part.complete else 0
            new = told[begin : begin + right + 1] if part.complete else []
            self._take(part, new, right)
            accepted += right
        return accepted

    def _apply_temperatures(
        self, logits: torch.Tensor, parts: Sequence[Part], begins: Sequence[int]
    ) -> None:
        """Divide each complete part's rows of `logits` by its request's temperature, in place."""
        if self._sharpen is None:
            return
        for part, begin in zip(parts, begins, strict=True):
            if part.complete:
                request = part.request
                rows = logits[begin : begin + part.drafts + 1]
                rows.copy_(self._sharpen(rows, request.temperature, request.plain_number))

    def _draft(self, parts: Sequence[Part]) -> list[list[int]]:
        """Let the first layers guess what follows, one token after the other.

        The rest of the model verifies the guesses in one go; keys and values of the first
        layers are shared. After Elhoushi et al., LayerSkip (ACL 2024).
        """
        drafts: list[list[int]] = [[] for _ in parts]
        for depth in range(max(part.drafts for part in parts)):
            live = [number for number, part in enumerate(parts) if part.drafts > depth]
            chunks = []
            for number in live:
                request = parts[number].request
                last = drafts[number][-1] if depth else request.tokens[-1]
                chunks.append(Chunk([last], len(request.tokens) - 1 + depth, request.blocks))
            batch = batch_of(chunks, self._shape.block_size, self._memory.device)
            layers = self._shape.draft_layers
            logits = self._model(batch, self._memory, batch.rows, layers)
            for number, token in zip(live, logits.argmax(-1).tolist(), strict=True):
                drafts[number].append(token)
        return drafts

    def _likeliest(self, logits: torch.Tensor) -> list[list[tuple[int, float]]]:
        """Return the likeliest tokens of each row with their log probabilities."""
        count = min(self._candidates(), logits.shape[-1])
        if not count or not len(logits):
            return [[] for _ in range(len(logits))]
        values, numbers = logits.log_softmax(-1).topk(count)
        return [
            list(zip(row, value, strict=True))
            for row, value in zip(numbers.tolist(), values.tolist(), strict=True)
        ]

    def _take(self, part: Part, new: list[tuple[int, list[tuple[int, float]]]], right: int) -> None:
        """Append a part's new tokens; of its drafts the first `right` were right."""
        request, tokens = part.request, [token for token, _ in new]
        request.tokens += tokens
        self.scheduler.computed(request, request.computed + part.count - part.drafts + right)
        if not new:
            return
        request.unanswered += new
        self._unsent.append(request)
        if request.constrained:
            for token in tokens:
                request.state = self._grammar.read(request.state, token)
        if not request.remaining:
            self.scheduler.finish(request)

    def _note(
        self,
        plan: Plan,
        times: tuple[int, int, int],
        level: tuple[int, int, float],
        accepted: int,
    ) -> None:
        drafted = sum(part.drafts for part in plan.parts)
        tokens = (plan.tokens - plan.decode_tokens, plan.decode_tokens)
        cache = (plan.preemptions, plan.queries, plan.hits)
        self._rows.append((*times, *level, *tokens, *cache, drafted, accepted))

    def take_rows(self, start_ns: int) -> list[dict[str, Any]]:
        """Return and forget the rows of `engine`, times after `start_ns`, numbered from 0."""
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in self._rows]
        self._rows.clear()
        return [
            {
                **row,
                "engine": self.name,
                "step": number,
                "start_ns": int(row["start_ns"]) - start_ns,
            }
            for number, row in enumerate(rows)
        ]


def _masked(part: Part) -> bool:
    return part.complete and part.request.constrained


def chunk(part: Part, drafts: Sequence[int]) -> Chunk:
    """Return what a part has to compute: known tokens and drafted ones."""
    request, begin = part.request, part.request.computed
    known = request.tokens[begin : begin + part.count - part.drafts]
    return Chunk([*known, *drafts], begin, request.blocks)


def rows_with_a_say(parts: Sequence[Part], firsts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the batch's rows whose logits are needed, and where each part's begin among them.

    These are the last known token of each complete part and its drafts. `firsts` are the rows
    of the parts' first tokens.
    """
    rows: list[int] = []
    begins = []
    for part, first in zip(parts, firsts, strict=True):
        begins.append(len(rows))
        if part.complete:
            end = first + part.count
            rows += range(end - 1 - part.drafts, end)
    return rows, begins


def agreeing(drafts: Sequence[int], chosen: Sequence[int]) -> int:
    """Return how many drafts, from the first, are what the whole model chose.

    >>> agreeing([5, 6, 7], [5, 6, 9, 1])
    2
    """
    count = 0
    while count < len(drafts) and drafts[count] == chosen[count]:
        count += 1
    return count
