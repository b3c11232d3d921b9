"""The clients of an inference server: when they ask, and for what."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Generic, TypeVar

from injectors.workloads.serving.request import CONSTRAINED, Request
from injectors.workloads.serving.vocabulary import Detokeniser

if TYPE_CHECKING:
    from injectors.workloads.serving import InferenceServer

Card = TypeVar("Card")
CARDS = 20
BACKLOG_NS = 1e8  # a pause of the whole job is no rush of requests afterwards
SPREAD = 0.4  # standard deviation of the logarithm of prompt lengths


class Deck(Generic[Card]):
    """Draws cards without putting them back until none is left.

    Any CARDS requests in a row thus ask for nearly the same work, whatever the seed.
    """

    def __init__(self, cards: Sequence[Card], draw: random.Random) -> None:
        self.cards, self._draw = list(cards), draw
        self._left: list[Card] = []

    def take(self) -> Card:
        """Draw one card."""
        if not self._left:
            self._left = self._draw.sample(self.cards, len(self.cards))
        return self._left.pop()


def lognormal(median: int) -> list[int]:
    """Return CARDS equally likely lengths of a log-normal distribution, at least 2."""
    quantile = NormalDist(math.log(median), SPREAD).inv_cdf
    return [max(2, round(math.exp(quantile((i + 0.5) / CARDS)))) for i in range(CARDS)]


def uniform(mean: int) -> list[int]:
    """Return CARDS equally likely lengths from half to one and a half of `mean`, at least 2."""
    return [max(2, round(mean * (0.5 + (i + 0.5) / CARDS))) for i in range(CARDS)]


def shares(**share: float) -> list[str]:
    """Return CARDS names, each for its share of them; what is left is "chat"."""
    cards = [name for name, part in share.items() for _ in range(round(part * CARDS))]
    return [*cards, *(["chat"] * (CARDS - len(cards)))]


class Clients:
    """A Poisson process of requests, of which at most `max_concurrency` are open at a time.

    A request that may not be sent yet is sent as soon as another is finished, as in vLLM's
    serving benchmark.

    Args:
        parameters: Rates, lengths and shares.
        texts: Texts of the vocabulary.
        chance: Asked with the name of a knob: the share of requests for which something holds.
    """

    def __init__(
        self,
        parameters: InferenceServer,
        seed: int,
        texts: Sequence[bytes],
        chance: Callable[[str], float],
    ) -> None:
        self._parameters, self._texts, self._chance = parameters, texts, chance
        self._draw = draw = random.Random(seed)
        p = parameters
        self._tenants = Deck(range(p.tenants), draw)
        self._prefixes = [self._words(p.prefix_tokens) for _ in range(p.tenants)]
        self._kinds = Deck(shares(document=p.document_share, json=p.constrained_share), draw)
        self._shared = Deck(shares(shared=p.shared_share), draw)
        self._prompts = Deck(lognormal(p.prompt_tokens), draw)
        self._documents = Deck(lognormal(p.document_tokens), draw)
        self._answers = Deck(uniform(p.generation_tokens), draw)
        self._number = 0
        self._next_ns: float | None = None

    @property
    def longest(self) -> int:
        """Most tokens that a request can have in the end."""
        prompt = self._parameters.prefix_tokens + max(self._prompts.cards)
        if "document" in self._kinds.cards:
            prompt = max(prompt, *self._documents.cards)
        return prompt + max(self._answers.cards)

    def _words(self, count: int) -> list[int]:
        return self._draw.choices(range(self._parameters.vocabulary), k=count)

    def due(self, now_ns: int, open_requests: int) -> list[Request]:
        """Return the requests that are sent now."""
        if self._next_ns is None:
            self._next_ns = now_ns
        sent: list[Request] = []
        while (
            self._next_ns <= now_ns and open_requests + len(sent) < self._parameters.max_concurrency
        ):
            sent.append(self._request(now_ns))
            pause_s = self._draw.expovariate(self._parameters.requests_per_s)
            self._next_ns = max(self._next_ns, now_ns - BACKLOG_NS) + pause_s * 1e9
        return sent

    def wait_s(self, now_ns: int) -> float:
        """Return how long it is until the next request."""
        return max(0.0, (self._next_ns or now_ns) - now_ns) / 1e9

    def _request(self, now_ns: int) -> Request:
        kind = self._kinds.take()
        shared = self._shared.take() == "shared" and kind != "document"
        tenant = self._tenants.take() if shared else None
        prefix = [] if tenant is None else self._prefixes[tenant]
        length = (self._documents if kind == "document" else self._prompts).take()
        tokens = [*prefix, *self._words(length)]
        self._number += 1
        return Request(
            number=self._number,
            tokens=tokens,
            prompt_tokens=len(tokens),
            generation_tokens=self._answers.take(),
            request_class=CONSTRAINED if kind == "json" else kind,
            arrival_ns=now_ns,
            detokeniser=Detokeniser(self._texts),
            tenant=tenant,
            sticky=self._draw.random() < self._chance("sticky_requests"),
            chunked=self._draw.random() < self._chance("chunked_requests"),
            cached=self._draw.random() < self._chance("cached_requests"),
            indexed=self._draw.random() < self._chance("indexed_requests"),
            temperature=self._draw.uniform(0.5, 1.5),
            plain_number=self._draw.random() < self._chance("plain_number_requests"),
        )
