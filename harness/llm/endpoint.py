"""One request to an OpenAI-compatible endpoint: retried with growing pauses, and the key hidden."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from cases.errors import HarnessError
from harness.llm.settings import ModelSettings

MAX_REPLY_BYTES = 16 * 2**20
MAX_PAUSE_S = 60.0
SHOWN_CHARACTERS = 500
# Nobody is served: wrong key, no such model, or an account that is spent.
HOPELESS = (401, 402, 403, 404)
AGAIN = (408, 409, 425, 429)


class EndpointDownError(HarnessError):
    """The endpoint serves nobody, so that nothing may be concluded about the model."""


class RefusedRequestError(Exception):
    """This one request was not answered; that costs its case."""


class _TransientError(Exception):
    """What may go away by itself.

    `down` tells whether it concerns every request; `pause_s` is what the server asked for.
    """

    def __init__(self, text: str, down: bool, pause_s: float = 0.0) -> None:
        super().__init__(text)
        self.down, self.pause_s = down, pause_s


@dataclass(frozen=True)
class Completion:
    """What came back, after how many attempts and how long."""

    document: dict[str, Any]
    attempts: int
    seconds: float


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Endpoint:
    """Sends requests; may be used by several threads.

    Args:
        settings: Where, how long and how often.
        key: Sent as a bearer token, and never shown; may be empty.
        stop: Ends pauses between attempts.

    Attributes:
        trouble: Why the last attempt showed that nobody is served, empty if it did not.
    """

    def __init__(self, settings: ModelSettings, key: str, stop: threading.Event) -> None:
        self._settings, self._key, self._stop = settings, key, stop
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self.trouble = ""
        self._opener = urllib.request.build_opener(_NoRedirect())

    def complete(self, body: dict[str, Any]) -> Completion:
        """Send one request, again if need be.

        Raises:
            EndpointDownError: the endpoint serves nobody, to the last attempt.
            RefusedRequestError: it does not serve this request.
        """
        start, attempt = time.monotonic(), 0
        while True:
            attempt += 1
            try:
                document = self._send(json.dumps(body).encode())
                self.trouble = ""
                return Completion(document, attempt, time.monotonic() - start)
            except _TransientError as error:
                self.trouble = self._hidden(str(error)) if error.down else ""
                if attempt >= self._settings.attempts or self._stop.is_set():
                    kind = EndpointDownError if error.down else RefusedRequestError
                    raise kind(self._hidden(f"{error}, after {attempt} attempts")) from None
                self._stop.wait(self._pause_s(attempt, error))

    def _pause_s(self, attempt: int, error: _TransientError) -> float:
        own = self._settings.backoff_s * float(2 ** (attempt - 1))
        return min(MAX_PAUSE_S, max(own, error.pause_s))

    def _send(self, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._settings.timeout_s) as response:
                return _parsed(self._read(response))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except TimeoutError:
            raise self._late() from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._late() from None
            raise _TransientError(f"{self._url} must be reachable ({error.reason})", True) from None
        except (OSError, http.client.HTTPException) as error:
            text = f"{self._url} broke off ({type(error).__name__}: {error})"
            raise _TransientError(text, False) from None

    def _read(self, response: Any) -> bytes:
        """Read a reply as a whole; `timeout` of a socket only holds between two of its bytes."""
        end, content = time.monotonic() + self._settings.timeout_s, bytearray()
        while chunk := response.read1(2**16):
            content += chunk
            if len(content) > MAX_REPLY_BYTES:
                raise RefusedRequestError(f"a reply must be at most {MAX_REPLY_BYTES} bytes")
            if time.monotonic() > end:
                raise self._late()
        return bytes(content)

    def _late(self) -> _TransientError:
        limit = f"{self._settings.timeout_s:g} s"
        return _TransientError(f"{self._url} must reply within {limit}", down=False)

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        said = error.read(MAX_REPLY_BYTES).decode(errors="replace")
        said = " ".join(self._hidden(said).split())[:SHOWN_CHARACTERS]
        text = f"{self._url} answered {error.code}: {said}"
        if error.code in HOPELESS:
            return EndpointDownError(text)
        if error.code in AGAIN or error.code >= 500:
            pause_s = _seconds(error.headers.get("Retry-After"))
            return _TransientError(text, error.code == 429, pause_s)
        return RefusedRequestError(text)

    def _hidden(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _parsed(content: bytes) -> dict[str, Any]:
    """Return a reply that holds a message; anything else may be better the next time."""
    try:
        document = json.loads(content)
        message = document["choices"][0]["message"]
        if not isinstance(message, dict):
            raise TypeError("the message is no object")
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        shown = content[:SHOWN_CHARACTERS].decode(errors="replace")
        why = f"{type(error).__name__}: {error}"
        raise _TransientError(
            f"a reply must be a chat completion ({why}), found {shown!r}", False
        ) from None
    assert isinstance(document, dict)
    return document


def _seconds(text: str | None) -> float:
    """Return a pause in seconds; 0 where none is stated that way.

    >>> _seconds("2.5"), _seconds("Wed, 21 Oct 2026 07:28:00 GMT"), _seconds(None)
    (2.5, 0.0, 0.0)
    """
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0
