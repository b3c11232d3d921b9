"""Replies that were paid for, kept by what they are replies to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from cases.bundle import cache_folder
from cases.documents import canonical_json, read_json, write_json
from cases.errors import InputError
from harness.diagnosers.llm.prompt import VERSION

FORMAT = "evalharness.completion/1.0"


class Cache:
    """Replies as files below `<user's cache>/evalharness/llm`.

    Args:
        address: Base URL of the endpoint.
        asking: Which of several askings about the same case this is, from 1.
        folder: Where the files go, if not in the user's cache.
    """

    def __init__(self, address: str, asking: int, folder: Path | None = None) -> None:
        self._address, self._asking = address, asking
        self._folder = folder or cache_folder() / "llm"

    def get(self, case_digest: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the reply to a request about a case, None if it is not known."""
        try:
            document = read_json(self._path(case_digest, body))
        except InputError:  # absent, or damaged: it is asked for again
            return None
        known = isinstance(document, dict) and document.get("format") == FORMAT
        return document["reply"] if known else None

    def put(self, case_digest: str, body: dict[str, Any], reply: dict[str, Any]) -> None:
        """Keep a reply."""
        write_json(self._path(case_digest, body), {"format": FORMAT, "reply": reply})

    def _path(self, case_digest: str, body: dict[str, Any]) -> Path:
        parts = [case_digest, VERSION, self._address, self._asking, body]
        key = hashlib.sha256(canonical_json(parts)).hexdigest()
        return self._folder / key[:2] / f"{key}.json"
