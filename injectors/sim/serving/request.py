"""A request on its way through simulated engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BLOCK_TOKENS = 16
RequestClass = Literal["chat", "json", "document"]


@dataclass(slots=True, eq=False)
class Request:
    """What a client asked for, and how far the engines have got with it.

    Attributes:
        number: In the order in which clients ask.
        prompt_tokens, answer_tokens: Lengths; the answer is as long as asked.
        prefix_tokens: Tokens of the prompt that all prompts of its tenant begin with.
        tenant: Application that sent it; None: no shared prefix.
        request_class: A "json" answer follows a grammar, a "document" has a long prompt.
        sticky: Whether the router goes by the tenant.
        chunked: Whether its prompt may be cut and share steps with decoding.
        cached: Whether its keys and values are kept from one step to the next.
        gap_ns: Time since the request before was ready to be sent.
        constrained: Whether its answer follows a grammar; `indexed`: whether an index tells which
            tokens may follow.
        known: Tokens known so far, of prompt and answer.
        computed: Tokens whose keys and values are there.
        keys: Its blocks; each by the key under which it can be found, 0 if it can't.
        registered: Blocks, from the first, that were offered to be found.
        runs: Of each token of the answer, how many drafts from it on are right (speculation).
    """

    number: int
    prompt_tokens: int
    answer_tokens: int
    prefix_tokens: int
    tenant: int | None
    request_class: RequestClass
    sticky: bool
    chunked: bool
    cached: bool
    gap_ns: int
    known: int = 0
    computed: int = 0
    constrained: bool = False
    indexed: bool = True
    keys: list[int] = field(default_factory=list)
    registered: int = 0
    runs: list[int] = field(default_factory=list)
    engine: str = ""
    arrival_ns: int = -1
    scheduled_ns: int = -1
    first_token_ns: int = -1
    finished_ns: int = -1
    cached_tokens: int = 0
    preemptions: int = 0

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self.known - self.prompt_tokens

    @property
    def longest(self) -> int:
        """Tokens that it will have in the end."""
        return self.prompt_tokens + self.answer_tokens

    def key(self, block: int) -> int:
        """Return the key of one of its full blocks: equal keys mean equal prefixes.

        Keys of shared blocks are negative, those of its own positive; 0 is no key.
        """
        if self.tenant is not None and (block + 1) * BLOCK_TOKENS <= self.prefix_tokens:
            return prefix_key(self.tenant, block)
        return (self.number + 1 << 20) + block


def prefix_key(tenant: int, block: int) -> int:
    """Return the key of a block of a tenant's prefix."""
    return -((tenant + 1 << 20) + block)
