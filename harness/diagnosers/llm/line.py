"""The line to the harness, which asks the model: a socket, one JSON document a line.

The diagnoser has no network and no key. It sends `case` once, then `messages` with the `tools`
that may be used, and `end` when it is done.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from harness.diagnosers.llm.conversation import Reply
from harness.diagnosers.llm.replies import Message


class ModelError(Exception):
    """The harness got no reply of the model."""


class Line:
    """A connection to the harness about one case; a context manager."""

    def __init__(self, path: str, case: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._file = self._socket.makefile("rwb")
        self._send({"case": case})

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, messages: tuple[Message, ...], tools: list[dict[str, Any]]) -> Reply:
        """Have the model reply.

        Raises:
            ModelError: it did not; says why.
        """
        self._send({"messages": messages, "tools": tools})
        line = self._file.readline()
        if not line:
            raise ModelError("the harness hung up")
        reply = json.loads(line)
        if "error" in reply:
            raise ModelError(reply["error"])
        return Reply(reply["message"], reply["prompt_tokens"], reply["completion_tokens"])

    def end(self, how: str) -> None:
        """Say how the conversation ended."""
        self._send({"end": how})

    def _send(self, document: dict[str, Any]) -> None:
        self._file.write(json.dumps(document).encode() + b"\n")
        self._file.flush()
