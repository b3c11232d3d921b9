"""The serving loop of one rank: clients, a router, and engines that share a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from cases.errors import ScenarioError
from injectors.workloads.base import Context, Program, Step
from injectors.workloads.serving.clients import Clients
from injectors.workloads.serving.engine import Engine, Shape
from injectors.workloads.serving.grammar import RECORDS, Grammar
from injectors.workloads.serving.model import Decoder
from injectors.workloads.serving.request import Request
from injectors.workloads.serving.sampling import compiled_sharpen
from injectors.workloads.serving.scheduler import Limits
from injectors.workloads.serving.vocabulary import byte_tokens

if TYPE_CHECKING:
    from injectors.workloads.serving import InferenceServer


class ServerProgram(Program):
    """Serves until a further `tokens_per_step` tokens were sent, and calls that a step."""

    def __init__(self, parameters: InferenceServer, context: Context) -> None:
        self._parameters, self._context = parameters, context
        p, knobs = parameters, context.knobs
        torch.manual_seed(context.seed)
        texts = byte_tokens(p.vocabulary, context.seed)
        self._clients = Clients(p, context.seed, texts, lambda name: knobs[name])
        self._fewest_blocks = -(-self._clients.longest // p.block_size)
        if p.kv_blocks < self._fewest_blocks:
            must = f"must hold the longest request, {self._fewest_blocks} blocks"
            raise ScenarioError(
                must, where="inference_server", field="kv_blocks", found=p.kv_blocks
            )
        self.model = Decoder(
            layers=p.layers,
            d_model=p.d_model,
            heads=p.heads,
            vocabulary=p.vocabulary,
            positions=self._clients.longest,
        ).to(context.device)
        grammar, shape = Grammar(RECORDS, texts), Shape(p.kv_blocks, p.block_size, p.draft_layers)
        sharpen = None if p.compile_sampling == "no" else compiled_sharpen(p.compile_sampling)
        self.engines = [
            Engine(f"engine{n}", self.model, grammar, shape, self.limits, self.candidates, sharpen)
            for n in range(p.engines)
        ]
        self._sent = self._promised = 0
        self._waited_ns = 0

    def limits(self) -> Limits:
        """Return what the engines may do, as the workload and the knobs have it."""
        p, knobs = self._parameters, self._context.knobs
        return Limits(
            max_num_seqs=int(min(p.max_num_seqs, knobs["max_num_seqs"])),
            max_num_batched_tokens=p.max_num_batched_tokens,
            kv_blocks=int(min(p.kv_blocks, max(knobs["kv_blocks"], self._fewest_blocks))),
            reserve=bool(knobs["reserve_answers"]),
            draft_tokens=int(knobs["draft_tokens"]),
        )

    def candidates(self) -> int:
        """Return how many likely tokens each answer tells."""
        return int(self._context.knobs["logprobs"])

    def step(self) -> Step:
        """Serve until a further `tokens_per_step` tokens were sent.

        What is sent beyond that counts for the next step.
        """
        begin, waited, model = time.monotonic_ns(), self._waited_ns, self._model_ns
        self._promised += self._parameters.tokens_per_step
        before = self._sent
        with torch.inference_mode():
            while self._sent < self._promised:
                self._turn()
        phases = {
            "data_wait_ns": self._waited_ns - waited,
            "forward_ns": self._model_ns - model,
        }
        return Step(begin, phases, None, self._sent - before)

    @property
    def _model_ns(self) -> int:
        return sum(engine.model_ns for engine in self.engines)

    def _turn(self) -> None:
        """Route what has arrived and let every engine do a step."""
        now = time.monotonic_ns()
        open_requests = [engine.open for engine in self.engines]
        for request in self._clients.due(now, sum(open_requests)):
            self.route(request).submit(request)
        busy = [engine for engine in self.engines if engine.open]
        if not busy:
            time.sleep(self._clients.wait_s(now))
            self._waited_ns += time.monotonic_ns() - now
        for engine in busy:
            self._sent += engine.step()

    def route(self, request: Request) -> Engine:
        """Choose an engine: a tenant's own, or the one with the fewest open requests."""
        if request.sticky and request.tenant is not None:
            return self.engines[request.tenant % len(self.engines)]
        return min(self.engines, key=lambda engine: engine.open)

    def tables(self, start_ns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
        """Return and forget the rows of `engine`, and of all requests sent or still open.

        Requests are numbered from 0 in each recording.
        """
        requests: list[Request] = []
        for engine in self.engines:
            requests += [*engine.done, *engine.open_requests()]
            engine.done.clear()
        first = min((request.number for request in requests), default=0)
        return {
            "engine": [row for engine in self.engines for row in engine.take_rows(start_ns)],
            "requests": [request.row(first, start_ns) for request in requests],
        }

    def state(self) -> dict[str, Any]:
        """Return the model's parameters."""
        state: dict[str, Any] = self.model.state_dict()
        return state
