"""Which engine a request goes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from injectors.sim import noise
from injectors.sim.job import ONE, Serving
from injectors.sim.serving.clients import prefix_tokens
from injectors.sim.serving.request import BLOCK_TOKENS, Request, prefix_key

OVERLOADED_Q16 = 78643  # 1.2 times the mean of open requests


class Loaded(Protocol):
    """What the router knows of an engine."""

    @property
    def open(self) -> int:
        """Requests that wait or run there."""


def route(request: Request, engines: Sequence[Loaded]) -> int:
    """Choose an engine: a tenant's own unless it is overloaded, or the one with fewest requests.

    Without a bound on load, engines that got behind would stay behind, since clients wait for
    them; real routers that go by prefixes have one as well.
    """
    if request.sticky and request.tenant is not None:
        own = request.tenant % len(engines)
        if engines[own].open * len(engines) <= most_open(engines):
            return own
    return least_loaded(engines)


def most_open(engines: Sequence[Loaded]) -> int:
    """Requests that an engine may have before others get its tenants', times the engines."""
    return sum(engine.open for engine in engines) * OVERLOADED_Q16 // ONE + len(engines)


def least_loaded(engines: Sequence[Loaded]) -> int:
    """Return the first of the engines with the fewest open requests."""
    return min(range(len(engines)), key=lambda number: engines[number].open)


def warm_keys(serving: Serving, seed: int, engine: int, engines: int) -> list[int]:
    """Keys of the prefixes that an engine has seen before, the most recent last.

    Of tenants that are another engine's it has seen those that were scattered.
    """
    order = [int(t) for t in noise.permutation(noise.key(seed, "warm", engine), serving.tenants)]
    own = [tenant for tenant in order if tenant % engines == engine]
    others = [tenant for tenant in order if tenant % engines != engine]
    tenants = [*(others if serving.scattered_q16 or not serving.sticky else ()), *own]
    blocks = range(prefix_tokens(serving) // BLOCK_TOKENS)
    return [prefix_key(tenant, block) for tenant in tenants for block in blocks]
