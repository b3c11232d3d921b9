"""Which model is asked, and what it may cost: read from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError

from cases.documents import canonical_json, parse_json
from cases.errors import InputError, RecordError
from cases.schema import Record
from harness.diagnosers.llm.prompt import VERSION
from harness.sandbox.digests import named_digest

PREFIX = "EVALHARNESS_LLM_"
KEY = f"{PREFIX}API_KEY"
PRINTABLE = re.compile(r"[!-~]*")


class ModelSettings(Record):
    """The model and its limits; each field is the variable EVALHARNESS_LLM_<FIELD>.

    Attributes:
        base_url: Address of the API, to which `/chat/completions` is added.
        model: Name of the model there.
        request: Further fields of each request, JSON; null leaves a default out.
        max_steps: Calls of the model a case.
        max_tokens: Prompt and completion tokens a case.
        timeout_s: Time for one reply.
        attempts: How often one request is sent until it is given up.
        backoff_s: Pause before the second attempt; doubles each time.
        price_input, price_cached_input, price_output: Per million tokens, in any currency;
            what is cached costs as much as other input unless stated.
        max_cost: What one command may pay, in the same currency.
    """

    base_url: str
    model: str = Field(min_length=1)
    request: dict[str, Any] = {}
    max_steps: PositiveInt = 20
    max_tokens: PositiveInt = 200_000
    timeout_s: PositiveFloat = 120.0
    attempts: PositiveInt = 5
    backoff_s: NonNegativeFloat = 1.0
    price_input: NonNegativeFloat | None = None
    price_cached_input: NonNegativeFloat | None = None
    price_output: NonNegativeFloat | None = None
    max_cost: PositiveFloat | None = None

    def decisive(self) -> dict[str, Any]:
        """Return what an answer depends on, JSON-ready: neither prices nor patience."""
        names = ("base_url", "model", "request", "max_steps", "max_tokens")
        return {"prompt": VERSION, **{name: getattr(self, name) for name in names}}

    def digest(self) -> str:
        """Digest of what an answer depends on."""
        return named_digest(canonical_json(self.decisive()))


def from_environment(environment: Mapping[str, str] | None = None) -> ModelSettings:
    """Read the settings.

    Raises:
        InputError: a variable is missing or breaks its rule; names it.
    """
    given = os.environ if environment is None else environment
    found: dict[str, Any] = {
        name: given[PREFIX + name.upper()]
        for name in ModelSettings.model_fields
        if given.get(PREFIX + name.upper())
    }
    for name in ("base_url", "model"):
        if name not in found:
            must = "must be set to ask a language model (see docs/llm.md)"
            raise InputError(must, where=PREFIX + name.upper())
    if "request" in found:
        found["request"] = parse_json(found["request"], f"{PREFIX}REQUEST")
    _check_address(found["base_url"])
    try:
        return ModelSettings.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = PREFIX + str(first["loc"][0]).upper()
        raise RecordError(first["msg"], where=where, found=first["input"]) from None


def api_key(environment: Mapping[str, str] | None = None) -> str:
    """Return the key, empty where the endpoint needs none.

    Raises:
        InputError: it cannot stand in a header; does not show it, as the library would.
    """
    key = (os.environ if environment is None else environment).get(KEY, "").strip()
    if not PRINTABLE.fullmatch(key):
        raise InputError("must be printable ASCII without blanks", where=KEY)
    return key


def _check_address(url: str) -> None:
    """Refuse what is no address, or holds a secret that would be written down with it."""
    parts = urlsplit(url)
    where = f"{PREFIX}BASE_URL"
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError("must hold neither user, password nor query", where=where)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("must be http://host/path or https://host/path", where=where, found=url)


def default_request(settings: ModelSettings) -> dict[str, Any]:
    """Return the fields that every request has beside messages and tools.

    >>> default_request(ModelSettings(base_url="http://a", model="m", request={"max_tokens": None}))
    {'model': 'm', 'temperature': 0}
    """
    fields = {"model": settings.model, "temperature": 0, "max_tokens": 4096, **settings.request}
    return {name: value for name, value in fields.items() if value is not None}
