"""A service that jobs report metrics to: an HTTP server in a process of its own.

Like the competitors of `injectors.hogs` it is a plain process with an ordinary name that dies
with the process that started it; its program comes by standard input.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from cases.errors import ScenarioError
from injectors.hogs import PR_SET_NAME, PR_SET_PDEATHSIG

NAME = "metrics-gateway"  # the kernel keeps 15 letters
PROGRAM = """
import ctypes, time
from http.server import BaseHTTPRequestHandler, HTTPServer
ctypes.CDLL(None).prctl({set_name}, {name!r})
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep({response_s!r})
        self.send_response(204)
        self.end_headers()
    def log_message(self, *arguments):
        pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class MetricsService:
    """A running service and the port of the loopback interface on which it listens."""

    process: subprocess.Popen[str]
    port: int

    def stop(self) -> None:
        """End it and wait until it is gone."""
        self.process.kill()
        self.process.wait()


def start(response_s: float, beside: int | None = None) -> MetricsService:
    """Start a service that answers each report after `response_s` seconds.

    Args:
        response_s: How long a report takes it.
        beside: Process whose network namespace it joins; None for the caller's.

    Raises:
        ScenarioError: it does not listen.
    """
    command = [sys.executable, "-"]
    if beside is not None:
        command = ["nsenter", "--net", f"--target={beside}", *command]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_die_with(os.getpid()),
        env={"PATH": os.environ.get("PATH", "")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    program = PROGRAM.format(set_name=PR_SET_NAME, name=NAME.encode(), response_s=response_s)
    process.stdin.write(program)
    process.stdin.close()
    with process.stdout:
        answer = process.stdout.readline().strip()
    if not answer.isdecimal():
        process.kill()
        process.wait()
        raise ScenarioError("the metrics service must listen on the loopback interface")
    return MetricsService(process, int(answer))


def _die_with(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare
