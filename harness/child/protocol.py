"""Messages between the harness and the zygote: a length, then JSON, over a pipe."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any

HEADER = struct.Struct("!I")
MAX_MESSAGE_BYTES = 16 * 2**20

Message = dict[str, Any]


def send(fd: int, message: Message) -> None:
    """Write one message; raises BrokenPipeError when nobody reads any more."""
    body = json.dumps(message).encode()
    view = memoryview(HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(fd, view) :]


class Reader:
    """Reads messages from a pipe without ever blocking longer than asked."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = bytearray()

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message, or None when none is whole within `timeout_s`.

        Raises:
            EOFError: the other side is gone.
            ValueError: what came is no message.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while (message := self._take()) is None:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([self.fd], [], [], left)[0]:
                return None
            chunk = os.read(self.fd, 2**16)
            if not chunk:
                raise EOFError("the other side closed the pipe")
            self._buffer += chunk
        return message

    def _take(self) -> Message | None:
        if len(self._buffer) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer)
        if length > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message must be at most {MAX_MESSAGE_BYTES} bytes, got {length}")
        if len(self._buffer) < HEADER.size + length:
            return None
        body = bytes(self._buffer[HEADER.size : HEADER.size + length])
        del self._buffer[: HEADER.size + length]
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ValueError(f"a message must be a JSON object, got {type(message).__name__}")
        return message
