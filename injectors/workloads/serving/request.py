"""A request on its way through an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from injectors.workloads.serving.automaton import DEAD, State
from injectors.workloads.serving.vocabulary import Detokeniser

CONSTRAINED = "json"


@dataclass(eq=False)
class Request:
    """What a client asked for, and how far the engine has got with it.

    Attributes:
        tokens: Prompt and what was generated so far.
        prompt_tokens: Length of the prompt.
        generation_tokens: Tokens that the client wants, at most and at least.
        tenant: Application whose system prompt it begins with; None: no shared prefix.
        sticky: Whether the router goes by the tenant.
        chunked: Whether its prompt may be cut and share steps with decoding.
        cached: Whether keys and values are kept between steps.
        indexed: Whether the masks of its grammar come from the index.
        temperature: What its logits are divided by before a token is chosen.
        plain_number: Whether compiled code sees the temperature as a Python number.
        computed: Tokens whose keys and values are in `blocks`.
        keys: Keys of its full blocks, see `blocks.block_keys`.
        state: Where the output is in the grammar.
        unanswered: Tokens not yet sent, each with its candidates.
        answer_bytes: Length of what was sent.
    """

    number: int
    tokens: list[int]
    prompt_tokens: int
    generation_tokens: int
    request_class: str
    arrival_ns: int
    detokeniser: Detokeniser
    tenant: int | None = None
    sticky: bool = True
    chunked: bool = True
    cached: bool = True
    indexed: bool = True
    temperature: float = 1.0
    plain_number: bool = False
    state: State = DEAD
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    unanswered: list[tuple[int, list[tuple[int, float]]]] = field(default_factory=list)
    answer_bytes: int = 0
    engine: str = ""
    scheduled_ns: int | None = None
    first_token_ns: int | None = None
    finished_ns: int | None = None
    cached_tokens: int = 0
    preemptions: int = 0

    @property
    def generated(self) -> int:
        """Tokens generated so far."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def remaining(self) -> int:
        """Tokens still to be generated."""
        return self.generation_tokens - self.generated

    @property
    def longest(self) -> int:
        """Tokens that it will have in the end."""
        return self.prompt_tokens + self.generation_tokens

    @property
    def constrained(self) -> bool:
        """Whether its output follows a grammar."""
        return self.request_class == CONSTRAINED

    def row(self, first: int, start_ns: int) -> dict[str, Any]:
        """Return its row of the table `requests`, numbered from `first`, times from `start_ns`."""
        times = ("arrival_ns", "scheduled_ns", "first_token_ns", "finished_ns")
        known = {name: getattr(self, name) for name in times}
        return {
            **{name: None if at is None else at - start_ns for name, at in known.items()},
            "request": self.number - first,
            "prompt_tokens": self.prompt_tokens,
            "generation_tokens": self.generated,
            "cached_tokens": self.cached_tokens,
            "preemptions": self.preemptions,
            "request_class": self.request_class,
            "tenant": self.tenant,
            "engine": self.engine,
        }
