"""A Unix socket in a folder of its own, with a thread for each connection."""

from __future__ import annotations

import io
import json
import shutil
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases.errors import HarnessError

MAX_LINE_BYTES = 32 * 2**20
CLOSE_S = 5.0
Converse = Callable[[io.BufferedIOBase, io.BufferedIOBase], None]


class Listener:
    """Has `converse` serve each connection until it returns; a context manager.

    Args:
        converse: Gets what to read from and what to write to.
        fail: Told of a fault of our own within `converse`.

    Attributes:
        socket: Path of the socket.

    Raises:
        HarnessError: there can be no socket.
    """

    def __init__(self, converse: Converse, fail: Callable[[HarnessError], None]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="evalharness."))
        self.socket = self._folder / "model.sock"
        try:
            self._server = _Server(str(self.socket), converse, fail)
        except OSError as error:  # such as a name that is too long, below a deep TMPDIR
            shutil.rmtree(self._folder, ignore_errors=True)
            raise HarnessError(f"{self.socket} must be able to listen ({error})") from None

    def __enter__(self) -> Listener:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.wait(CLOSE_S)
        shutil.rmtree(self._folder, ignore_errors=True)


def read_document(inbox: io.BufferedIOBase) -> dict[str, Any]:
    """Return the JSON object of the next line; an empty one at the end, or if there is none."""
    try:
        line = inbox.readline(MAX_LINE_BYTES)
        document = json.loads(line) if line.endswith(b"\n") else {}
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Server(socketserver.ThreadingUnixStreamServer):
    """Its threads do not keep the harness from ending while a model is slow."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, converse: Converse, fail: Callable[[HarnessError], None]) -> None:
        super().__init__(path, _Handler)
        self.converse, self._fail = converse, fail
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
        """Tell of a fault of our own; a diagnoser that was ended meanwhile has its outcome."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self._fail(HarnessError(f"the line to the model must work: {error!r}"))


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.server.converse(self.rfile, self.wfile)
