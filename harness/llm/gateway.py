"""The one way out of the sandbox: a socket on which the diagnoser has the model asked.

It takes messages and nothing else: address, model and key are the harness's own.
"""

from __future__ import annotations

import io
import json
import shutil
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cases.errors import EvalHarnessError, HarnessError, InputError
from harness.llm.cache import Cache
from harness.llm.endpoint import Endpoint, EndpointDownError, RefusedRequestError
from harness.llm.settings import PREFIX, ModelSettings, default_request
from harness.llm.transcript import RUNNING, Transcript, write_cost
from harness.llm.usage import Usage, usage_of
from harness.results import Answer
from harness.sandbox.worker import Task

MAX_LINE_BYTES = 32 * 2**20
CLOSE_S = 5.0


@dataclass(frozen=True)
class Asked:
    """Where conversations of one run go.

    Attributes:
        folder: The results folder.
        digests: Digests of the cases by id.
        asking: Which of several askings this is, from 1.
    """

    folder: Path
    digests: Mapping[str, str]
    asking: int = 1


class Gateway:
    """Serves the conversations of one run; a context manager.

    Args:
        settings: The model.
        key: The endpoint's key, may be empty.
        asked: Where conversations go.
    """

    def __init__(self, settings: ModelSettings, key: str, asked: Asked) -> None:
        self._settings, self._asked = settings, asked
        self._stop = threading.Event()
        self._endpoint = Endpoint(settings, key, self._stop)
        self._cache = Cache(settings.base_url, asked.asking)
        self._lock, self._paid = threading.Lock(), Usage()
        self._failure: EvalHarnessError | None = None
        self._slot = Path(tempfile.mkdtemp(prefix="evalharness."))
        self._socket = self._slot / "model.sock"
        try:
            self._server = _Server(str(self._socket), self)
        except OSError as error:  # such as a name that is too long, below a deep TMPDIR
            shutil.rmtree(self._slot, ignore_errors=True)
            raise HarnessError(f"{self._socket} must be able to listen ({error})") from None

    def __enter__(self) -> Gateway:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.wait(CLOSE_S)
        shutil.rmtree(self._slot, ignore_errors=True)
        write_cost(self._asked.folder, self._settings, self._paid)

    def task(self, task: Task) -> Task:
        """Return the task with the socket shown to it, and told where it is."""
        settings = self._settings
        budget = {"steps": settings.max_steps, "tokens": settings.max_tokens}
        told = {"socket": str(self._socket), "budget": budget}
        return replace(task, settings=told, shown=(*task.shown, self._slot))

    def check(self, answer: Answer) -> None:
        """Raise what ends the whole run, if it has happened: no answer counts any more.

        A case whose time was up while the endpoint turned everybody away is no slow model's.
        """
        if answer.outcome == "timeout" and self._endpoint.trouble:
            must = "the endpoint must serve within the time of a case"
            self.fail(EndpointDownError(f"{must}, found: {self._endpoint.trouble}"))
        if self._failure:
            raise self._failure

    def fail(self, error: EvalHarnessError) -> None:
        """End the run; the first reason counts."""
        self._failure = self._failure or error

    def converse(self, inbox: io.BufferedIOBase, outbox: io.BufferedIOBase) -> None:
        """Serve one conversation until the other side hangs up."""
        case = str(_read(inbox).get("case"))
        digest = self._asked.digests[case]
        transcript = Transcript(self._asked.folder, case, self._settings)
        transcript.write(RUNNING)
        while request := _read(inbox):
            if "end" in request:
                transcript.write(str(request["end"]))
                continue
            body = default_request(self._settings)
            body |= {"messages": request["messages"], "tools": request["tools"]}
            reply = self._answer(transcript, digest, body)
            outbox.write(json.dumps(reply).encode() + b"\n")
            outbox.flush()

    def _answer(self, transcript: Transcript, digest: str, body: dict[str, Any]) -> dict[str, Any]:
        transcript.messages = body["messages"]
        try:
            if self._failure:
                raise self._failure
            message, usage = self._reply(transcript, digest, body)
        except (RefusedRequestError, EvalHarnessError) as error:
            if isinstance(error, EvalHarnessError):
                self.fail(error)
            transcript.write(f"no reply: {error}")
            return {"error": str(error)}
        return {
            "message": message,
            **usage.model_dump(include={"prompt_tokens", "completion_tokens"}),
        }

    def _reply(
        self, transcript: Transcript, digest: str, body: dict[str, Any]
    ) -> tuple[dict[str, Any], Usage]:
        """Return the model's message from the cache, or else from the endpoint."""
        known = self._cache.get(digest, body)
        if known is not None:
            reply, facts = known, {}
        else:
            self._check_cost()
            completion = self._endpoint.complete(body)
            reply = completion.document
            facts = {"attempts": completion.attempts, "seconds": round(completion.seconds, 3)}
            self._cache.put(digest, body, reply)
        usage, message = usage_of(reply, body), reply["choices"][0]["message"]
        with self._lock:
            self._paid += Usage() if known is not None else usage
        transcript.add(body["messages"], message, usage, known is not None, **facts)
        return message, usage

    def _check_cost(self) -> None:
        limit = self._settings.max_cost
        if limit is None:
            return
        paid = self._paid.cost(self._settings)
        if paid is None:
            must = "must be set where the cost is limited"
            raise InputError(must, where=f"{PREFIX}PRICE_INPUT and {PREFIX}PRICE_OUTPUT")
        if paid >= limit:
            must = "must allow for the cases that are left (answers so far are kept)"
            raise InputError(must, where=f"{PREFIX}MAX_COST", found=limit)


def _read(inbox: io.BufferedIOBase) -> dict[str, Any]:
    """Return the next document, an empty one at the end."""
    try:
        line = inbox.readline(MAX_LINE_BYTES)
        document = json.loads(line) if line.endswith(b"\n") else {}
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Server(socketserver.ThreadingUnixStreamServer):
    """Threads do not keep the harness from ending while a model is slow."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, gateway: Gateway) -> None:
        super().__init__(path, _Handler)
        self.gateway = gateway
        self._running: set[threading.Thread] = set()

    def wait(self, limit_s: float) -> None:
        """Give conversations a moment to write down how they ended."""
        deadline = time.monotonic() + limit_s
        for thread in list(self._running):
            thread.join(max(0.0, deadline - time.monotonic()))

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, known as running meanwhile."""
        thread = threading.current_thread()
        self._running.add(thread)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._running.discard(thread)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """End the run for a fault of our own; a diagnoser that was ended has its outcome."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.gateway.fail(HarnessError(f"the line to the model must work: {error!r}"))


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.server.gateway.converse(self.rfile, self.wfile)
