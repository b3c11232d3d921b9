"""The whole server: clients, a router and engines, as events in the order of their times.

    arrive    a client sends a request
    deliver   keys and values have come to a decode engine
    end       an engine's step ends and brings tokens
    start     a free engine looks for something to do

Events at the same time happen in this order, so that what arrives while an engine is between two
steps is in the next one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.serving.clients import Clients
from injectors.sim.serving.replica import Replica, Step
from injectors.sim.serving.request import Request
from injectors.sim.serving.router import least_loaded, route
from injectors.sim.serving.speculation import right_runs
from injectors.sim.serving.transfers import Paths, Transfer

ARRIVE, DELIVER, END, START = range(4)
BACKLOG_NS = 100_000_000  # a pause of the whole server is no rush of requests afterwards


class Server:
    """A server in progress; `advance` lets it generate tokens.

    Args:
        job: The whole job.
        replicas: All engines.
        prefilling: How many of them, the first ones, only compute prompts and hand them on to
            the others; 0: every engine does both.
        paths: Between engines.
        observe: Told of every step when it ends.

    Attributes:
        requests: All that were sent, in the order of arrival.
        tokens: Generated so far by all engines.
        now_ns: Time of the last event.
    """

    def __init__(
        self,
        job: Job,
        replicas: Sequence[Replica],
        prefilling: int,
        paths: Paths,
        observe: Callable[[Replica, Step], None] = lambda replica, step: None,
    ) -> None:
        self._serving, self._seed, self._observe = job.serving, job.seed, observe
        self.replicas, self._prefilling, self.paths = replicas, prefilling, paths
        self.requests: list[Request] = []
        self.tokens = self.now_ns = 0
        self._clients = Clients(job.serving, job.seed)
        self._next = self._clients.take()
        self._due_ns, self._awaited, self._open = self._next.gap_ns, False, 0
        self._busy = [False] * len(replicas)
        self._events: list[tuple[int, int, int, Any]] = []
        self._pushed = 0
        for _ in range(job.serving.concurrency):
            self._begin_with(self._take())
        self._await_next()

    @property
    def entry(self) -> Sequence[Replica]:
        """Engines that take requests from clients."""
        return self.replicas[: self._prefilling] if self._prefilling else self.replicas

    def advance(self, tokens: int) -> int:
        """Go on until `tokens` tokens were generated in all; returns when that was, in ns."""
        handle = (self._arrive, self._deliver, self._end, self._start)
        while self.tokens < tokens:
            if not self._events:
                raise RuntimeError(f"must generate {tokens} tokens, stopped at {self.tokens}")
            self.now_ns, kind, _, what = heapq.heappop(self._events)
            handle[kind](what)
        return self.now_ns

    def warm_up(self, tokens: int) -> int:
        """Generate tokens before the recording; devices are then as warm as they stay.

        Returns:
            When that was, in ns.
        """
        begin = self.advance(tokens // 2)
        since = [replica.steps for replica in self.replicas]
        end = self.advance(tokens)
        for replica, step in zip(self.replicas, since, strict=True):
            replica.settle(step, begin)
        return end

    def _push(self, time_ns: int, kind: int, what: object) -> None:
        heapq.heappush(self._events, (time_ns, kind, self._pushed, what))
        self._pushed += 1

    def _await_next(self) -> None:
        """Let the next request be sent when it is due and a client is free."""
        most = self._serving.concurrency
        if not self._awaited and (not most or self._open < most):
            self._awaited = True
            self._push(max(self._due_ns, self.now_ns), ARRIVE, None)

    def _take(self) -> Request:
        """Let a client ask."""
        request, self._next = self._next, self._clients.take()
        request.arrival_ns, request.known = self.now_ns, request.prompt_tokens
        if self._serving.draft_tokens:
            request.runs = right_runs(self._seed, request, self._serving.acceptance_q16)
        self._open += 1
        self.requests.append(request)
        return request

    def _begin_with(self, request: Request) -> None:
        """Let the server begin in the middle of an answer, as one that has run for long."""
        draw = noise.key(self._seed, "progress", request.number) >> 48
        request.known += 1 + (request.answer_tokens - 1) * draw // ONE
        request.computed = request.known - 1
        decoding = self.replicas[self._prefilling :]
        number = least_loaded(decoding) if self._prefilling else route(request, decoding)
        self._submit(self._prefilling + number, request)

    def _arrive(self, _: None) -> None:
        request = self._take()
        self._due_ns = max(self._due_ns, self.now_ns - BACKLOG_NS) + self._next.gap_ns
        self._awaited = False
        self._submit(route(request, self.entry), request)
        self._await_next()

    def _submit(self, number: int, request: Request) -> None:
        self.replicas[number].submit(request)
        self._wake(number)

    def _wake(self, number: int) -> None:
        """Let an engine look for something to do unless it is in a step."""
        if not self._busy[number]:
            self._busy[number] = True
            self._push(self.now_ns, START, number)

    def _start(self, number: int) -> None:
        replica = self.replicas[number]
        first = not replica.steps
        step = replica.step(self.now_ns)
        if first and not self._prefilling:
            # What did not fit in the middle of an answer has to begin at its beginning.
            for request in replica.scheduler.waiting:
                request.known, request.computed = request.prompt_tokens, 0
        if step is None:
            self._busy[number] = False
        else:
            self._push(step.end_ns, END, (number, step))

    def _end(self, what: tuple[int, Step]) -> None:
        number, step = what
        replica = self.replicas[number]
        step, done, tokens = replica.finish(step)
        self.tokens += tokens
        self._observe(replica, step)
        for request in done:
            replica.scheduler.release(request)
            self._open -= 1
            self._await_next()
        if number < self._prefilling:
            self._hand_on(number, step)
        self._busy[number] = False
        self._wake(number)

    def _hand_on(self, source: int, step: Step) -> None:
        """Send away the keys and values of prompts that are done, if answers go on."""
        replica = self.replicas[source]
        for part in step.plan.parts:  # a prefill engine decodes nothing
            request = part.request
            if not part.complete or request.finished_ns >= 0:
                continue
            replica.scheduler.finish(request)
            target = self._prefilling + least_loaded(self.replicas[self._prefilling :])
            transfer = self.paths.send(request, source, target, self.now_ns)
            self._push(transfer.end_ns, DELIVER, transfer)

    def _deliver(self, transfer: Transfer) -> None:
        request = transfer.request
        self.replicas[transfer.source].scheduler.release(request)
        self._wake(transfer.source)
        request.computed = request.prompt_tokens
        self._submit(transfer.target, request)
