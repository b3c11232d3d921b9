"""The model as one thing: replies that are known, that are paid for, and what may be paid."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from cases.errors import InputError
from harness.llm.cache import Cache
from harness.llm.endpoint import Endpoint
from harness.llm.settings import PREFIX, ModelSettings
from harness.llm.usage import Usage, usage_of


@dataclass(frozen=True)
class Replied:
    """One reply: the model's message, its tokens, whether it was known, and how it came."""

    message: dict[str, Any]
    usage: Usage
    reused: bool
    facts: dict[str, Any] = field(default_factory=dict)


class Model:
    """Asks the endpoint what the cache does not know; may be used by several threads.

    Args:
        settings: The model.
        key: The endpoint's key, may be empty.
        asking: Which of several askings about the same cases this is, from 1.
        stop: Ends pauses between attempts.

    Attributes:
        paid: Tokens of the replies that were not known.
    """

    def __init__(
        self, settings: ModelSettings, key: str, asking: int, stop: threading.Event
    ) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings, key, stop)
        self._cache = Cache(settings.base_url, asking)
        self._lock = threading.Lock()
        self.paid = Usage()

    @property
    def trouble(self) -> str:
        """Why the endpoint serves nobody just now, empty if it does."""
        return self._endpoint.trouble

    def reply(self, case_digest: str, body: dict[str, Any]) -> Replied:
        """Return the reply to a request about a case.

        Raises:
            EndpointDownError: the endpoint serves nobody.
            RefusedRequestError: it does not serve this request.
            InputError: no more may be paid.
        """
        known = self._cache.get(case_digest, body)
        if known is not None:
            return Replied(known["choices"][0]["message"], usage_of(known, body), reused=True)
        self._check_cost()
        completion = self._endpoint.complete(body)
        reply, usage = completion.document, usage_of(completion.document, body)
        self._cache.put(case_digest, body, reply)
        with self._lock:
            self.paid += usage
        facts = {"attempts": completion.attempts, "seconds": round(completion.seconds, 3)}
        return Replied(reply["choices"][0]["message"], usage, reused=False, facts=facts)

    def _check_cost(self) -> None:
        limit = self._settings.max_cost
        if limit is None:
            return
        paid = self.paid.cost(self._settings)
        if paid is None:
            must = "must be set where the cost is limited"
            raise InputError(must, where=f"{PREFIX}PRICE_INPUT and {PREFIX}PRICE_OUTPUT")
        if paid >= limit:
            must = "must allow for the cases that are left (answers so far are kept)"
            raise InputError(must, where=f"{PREFIX}MAX_COST", found=limit)
