"""Tokens and what they cost."""

from __future__ import annotations

import json
from typing import Any

from pydantic import NonNegativeInt

from cases.schema import Record
from harness.llm.settings import ModelSettings

CHARACTERS_A_TOKEN = 4  # where an endpoint does not count
PER_PRICE = 1_000_000


class Usage(Record):
    """Tokens of one reply, or of several.

    `cached_prompt_tokens` are part of `prompt_tokens`; `estimated` where the endpoint did not
    count.
    """

    prompt_tokens: NonNegativeInt = 0
    cached_prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_prompt_tokens=self.cached_prompt_tokens + other.cached_prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            estimated=self.estimated or other.estimated,
        )

    def cost(self, settings: ModelSettings) -> float | None:
        """Return the cost in the currency of the prices, None if prices are not known.

        >>> settings = ModelSettings(base_url="http://a", model="m", price_input=2, price_output=8)
        >>> Usage(prompt_tokens=500_000, completion_tokens=250_000).cost(settings)
        3.0
        """
        if settings.price_input is None or settings.price_output is None:
            return None
        again = settings.price_cached_input
        again = settings.price_input if again is None else again
        fresh = self.prompt_tokens - self.cached_prompt_tokens
        total = fresh * settings.price_input + self.cached_prompt_tokens * again
        return (total + self.completion_tokens * settings.price_output) / PER_PRICE


def usage_of(reply: dict[str, Any], body: dict[str, Any]) -> Usage:
    """Return what a reply says that it used; estimated from its length where it says nothing."""
    stated = reply.get("usage")
    stated = stated if isinstance(stated, dict) else {}
    prompt, completion = _count(stated, "prompt_tokens"), _count(stated, "completion_tokens")
    if prompt is None or completion is None:
        return Usage(
            prompt_tokens=_estimate(body),
            completion_tokens=_estimate(reply["choices"][0]["message"]),
            estimated=True,
        )
    details = stated.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=prompt,
        cached_prompt_tokens=min(cached or 0, prompt),
        completion_tokens=completion,
    )


def _count(stated: dict[str, Any], name: str) -> int | None:
    value = stated.get(name)
    return value if isinstance(value, int) and value >= 0 else None


def _estimate(document: Any) -> int:
    return len(json.dumps(document)) // CHARACTERS_A_TOKEN + 1
