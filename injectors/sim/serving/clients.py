"""The clients of a simulated server: when they ask, and for what.

What a request is depends on its number alone. Requests that follow each other have stratified
draws, as the decks of the recorded server give them, so that any twenty ask for nearly the same
work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Serving
from injectors.sim.serving.request import BLOCK_TOKENS, Request, RequestClass

DECK, KINDS = 20, 100
DEALT = 10 * DECK  # requests that are drawn together
NS_PER_S = 10**9


def stratified_q16(seed: int, name: str, first: int, count: int, deck: int) -> noise.Ints:
    """Draw numbers from 0 to 65535 for the requests `first` to `first` + `count` - 1.

    Requests come in decks; of the numbers of a deck there is one in each of `deck` equal parts of
    the range.
    """
    decks = np.arange(first // deck, -(-(first + count) // deck))[:, None]
    keys = noise.keys(seed, "deck", name, decks, np.arange(deck)[None, :])
    places = np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1, kind="stable")
    within = noise.uniform_q16(noise.extend(keys, "within"))
    drawn = (((places << 16) + within) // deck).reshape(-1).astype(np.int64)
    begin = first % deck
    return np.asarray(drawn[begin : begin + count])


def prefix_tokens(serving: Serving) -> int:
    """Tokens of a tenant's prefix."""
    return serving.prompt_tokens * serving.prefix_share_q16 >> 16


def largest_request(serving: Serving) -> int:
    """Tokens that a request can have at most, prompt and answer."""
    own = serving.prompt_tokens - prefix_tokens(serving)
    longest = prefix_tokens(serving) + own * int(_own_factor(np.array([ONE - 1]))[0]) // ONE + 1
    if serving.long_prompt_q16:
        longest = max(longest, serving.long_prompt_tokens * 5 // 4 + 1)
    return longest + serving.answer_tokens * 3 // 2 + 1


def _own_factor(u_q16: noise.Ints) -> noise.Ints:
    """Length of a prompt's own part over its mean: half, and half exponential."""
    return np.asarray((ONE + noise.EXPONENTIAL_Q16[u_q16 >> (16 - noise.TABLE_BITS)]) >> 1)


@dataclass(frozen=True)
class _Draws:
    """Draws for a run of requests, by what they decide; each of shape (DEALT,)."""

    kind: noise.Ints
    prompt: noise.Ints
    answer: noise.Ints
    tenant: noise.Ints
    sticky: noise.Ints
    chunked: noise.Ints
    cached: noise.Ints
    indexed: noise.Ints
    gap: noise.Ints

    @classmethod
    def of(cls, seed: int, first: int, tenants: int) -> _Draws:
        """Draw for the DEALT requests from number `first` on; each tenant asks once in turn."""
        decks = {name: DECK for name in cls.__dataclass_fields__ if name != "gap"}
        decks |= {"kind": KINDS, "tenant": tenants}
        drawn = {n: stratified_q16(seed, n, first, DEALT, deck) for n, deck in decks.items()}
        keys = noise.keys(seed, "gap", np.arange(first, first + DEALT))
        return cls(**drawn, gap=noise.exponential_q16(keys))


class Clients:
    """The requests in order: `take` makes the next one.

    Arrivals are a Poisson process; that clients wait for answers before they ask again
    (`Serving.concurrency`) is up to the server's loop.
    """

    def __init__(self, serving: Serving, seed: int) -> None:
        self._serving, self._seed = serving, seed
        self._dealt: list[Request] = []
        self._first = 0

    def take(self) -> Request:
        """Return the next request."""
        if not self._dealt:
            self._dealt = self._deal()[::-1]
            self._first += DEALT
        return self._dealt.pop()

    def _deal(self) -> list[Request]:
        s, draws = self._serving, _Draws.of(self._seed, self._first, self._serving.tenants)
        own = s.prompt_tokens - prefix_tokens(s)
        chats = prefix_tokens(s) + np.maximum(own * _own_factor(draws.prompt) >> 16, 1)
        documents = s.long_prompt_tokens * (3 * ONE // 4 + (draws.prompt >> 1)) >> 16
        answers = np.maximum(s.answer_tokens * (ONE // 2 + draws.answer) >> 16, 2)
        uncached = s.uncached_q16 if s.kv_cache else ONE
        unchunked = s.unchunked_q16 if s.chunk_tokens else ONE
        scattered = s.scattered_q16 if s.sticky else ONE
        gap_ns = NS_PER_S * ONE // max(s.requests_per_s_q16, 1) * draws.gap >> 16
        found = []
        for i in range(DEALT):
            kind = self._kind(int(draws.kind[i]))
            document = kind == "document"
            found.append(
                Request(
                    number=self._first + i,
                    prompt_tokens=int(documents[i] if document else chats[i]),
                    answer_tokens=int(answers[i]),
                    prefix_tokens=0 if document else prefix_tokens(s),
                    tenant=None if document else int(draws.tenant[i]) * s.tenants >> 16,
                    request_class=kind,
                    sticky=int(draws.sticky[i]) >= scattered,
                    chunked=int(draws.chunked[i]) >= unchunked,
                    cached=int(draws.cached[i]) >= uncached,
                    gap_ns=int(gap_ns[i]),
                    constrained=kind == "json",
                    indexed=int(draws.indexed[i]) >= s.unindexed_q16,
                )
            )
        return found

    def _kind(self, u_q16: int) -> RequestClass:
        if u_q16 < self._serving.long_prompt_q16:
            return "document"
        structured = self._serving.long_prompt_q16 + self._serving.structured_q16
        return "json" if u_q16 < structured else "chat"


def least_blocks(serving: Serving) -> int:
    """Blocks that the longest request needs."""
    return -(-largest_request(serving) // BLOCK_TOKENS)
