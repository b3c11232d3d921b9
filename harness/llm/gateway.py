"""The one way out of the sandbox: a socket on which the diagnoser has the model asked.

It takes messages and nothing else: address, model and key are the harness's own.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cases.errors import EvalHarnessError
from harness.llm.endpoint import EndpointDownError, RefusedRequestError
from harness.llm.listener import Listener, read_document
from harness.llm.model import Model
from harness.llm.settings import ModelSettings, default_request
from harness.llm.transcript import RUNNING, Transcript, write_cost
from harness.results import Answer
from harness.sandbox.worker import Task


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
        self._model = Model(settings, key, asked.asking, self._stop)
        self._failure: EvalHarnessError | None = None
        self._listener = Listener(self.converse, self.fail)

    def __enter__(self) -> Gateway:
        self._listener.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._listener.__exit__()
        write_cost(self._asked.folder, self._settings, self._model.paid)

    def task(self, task: Task) -> Task:
        """Return the task with the socket shown to it, and told where it is."""
        settings, socket = self._settings, self._listener.socket
        budget = {"steps": settings.max_steps, "tokens": settings.max_tokens}
        told = {"socket": str(socket), "budget": budget}
        return replace(task, settings=told, shown=(*task.shown, socket.parent))

    def check(self, answer: Answer) -> None:
        """Raise what ends the whole run, if it has happened: no answer counts any more.

        A case whose time was up while the endpoint turned everybody away is no slow model's.
        """
        if answer.outcome == "timeout" and self._model.trouble:
            must = "the endpoint must serve within the time of a case"
            self.fail(EndpointDownError(f"{must}, found: {self._model.trouble}"))
        if self._failure:
            raise self._failure

    def fail(self, error: EvalHarnessError) -> None:
        """End the run; the first reason counts."""
        self._failure = self._failure or error

    def converse(self, inbox: io.BufferedIOBase, outbox: io.BufferedIOBase) -> None:
        """Serve one conversation until the other side hangs up."""
        hello = read_document(inbox)
        if not hello:  # it was ended before it said anything
            return
        case = str(hello["case"])
        transcript = Transcript(self._asked.folder, case, self._settings)
        transcript.write(RUNNING)
        while request := read_document(inbox):
            if "end" in request:
                transcript.write(str(request["end"]))
                continue
            body = default_request(self._settings)
            body |= {"messages": request["messages"], "tools": request["tools"]}
            answer = self._answer(transcript, self._asked.digests[case], body)
            outbox.write(json.dumps(answer).encode() + b"\n")
            outbox.flush()

    def _answer(self, transcript: Transcript, digest: str, body: dict[str, Any]) -> dict[str, Any]:
        transcript.messages = body["messages"]
        try:
            if self._failure:
                raise self._failure
            reply = self._model.reply(digest, body)
        except (RefusedRequestError, EvalHarnessError) as error:
            if isinstance(error, EvalHarnessError):
                self.fail(error)
            transcript.write(f"no reply: {error}")
            return {"error": str(error)}
        transcript.add(body["messages"], reply.message, reply.usage, reply.reused, **reply.facts)
        return {
            "message": reply.message,
            "prompt_tokens": reply.usage.prompt_tokens,
            "completion_tokens": reply.usage.completion_tokens,
        }
