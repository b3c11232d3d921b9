"""A real HTTP server on the loopback interface that plays a scripted model.

    def test_something(server, ask):
        server.play = Expert()              # or any function of (request, its number)
        summary = ask()                     # evalharness run -d llm on the small suite

A play returns a `Play`; `calls` and `says` make the usual ones.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import cli

KEY = "sk-very-secret-0123456789"
Request = dict[str, Any]


@dataclass(frozen=True)
class Play:
    """What the server does with one request: waits, then sends this."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0


def message(**fields: Any) -> Play:
    """A reply that used 100 prompt tokens, 40 of them cached, and 10 completion tokens."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 40},
    }
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **fields}}
    return Play(json.dumps({"choices": [choice], "usage": usage}).encode())


def says(content: str) -> Play:
    """A reply in words."""
    return message(content=content)


def calls(*given: tuple[str, Any]) -> Play:
    """A reply that uses tools; arguments that are a text are sent as they are."""
    return message(
        tool_calls=[
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": value if isinstance(value, str) else json.dumps(value),
                },
            }
            for number, (name, value) in enumerate(given)
        ]
    )


def submits(answer: Any) -> Play:
    """A reply that hands in an answer."""
    return calls(("submit_diagnosis", answer))


LOADER = "SELECT avg(cpu_ns) / (SELECT avg(cpu_ns) FROM reference.loader) AS v FROM loader"
DELAY = (
    "SELECT sum(run_delay_ns) * 1.0 / (SELECT sum(run_delay_ns) FROM reference.processes) AS v"
    " FROM processes"
)
RIVALS = {LOADER: "dataloader_cpu_bound", DELAY: "cpu_contention_colocated"}


def expert(request: Request, number: int) -> Play:
    """Play a model that knows the small suite: looks, queries, answers by the numbers."""
    messages = request["messages"]
    if re.search(r"Not recorded: .*\bloader\b", messages[1]["content"]):
        missing = {"missing_signals": ["loader", "processes"], "candidates": list(RIVALS.values())}
        return submits({"verdict": "abstain", **missing})
    if len(messages) == 2:
        return calls(("list_tables", {}), ("read_configuration", {}))
    if len(messages) == 5:
        return calls(*(("run_sql", {"sql": sql}) for sql in RIVALS))
    numbers = [float(said["content"].splitlines()[1]) for said in messages[-2:]]
    for (sql, cause), value in zip(RIVALS.items(), numbers, strict=True):
        if value > 2:
            evidence = {"sql": sql, "value": value, "says": "grown against the reference run"}
            finding = {"cause": cause, "confidence": 0.9, "evidence": [evidence]}
            return submits({"verdict": "faulty", "findings": [finding], "confidence": 0.9})
    return submits({"verdict": "healthy", "confidence": 0.8})


class Server(ThreadingHTTPServer):
    """The endpoint; `requests` holds (headers, body) of all that it was sent."""

    daemon_threads = True
    play: Callable[[Request, int], Play] = staticmethod(expert)

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[dict[str, str], Request]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Base URL of the endpoint."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the play."""


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(({"path": self.path, **dict(self.headers)}, body))
            number = len(self.server.requests)
        play = self.server.play(body, number)
        if play.wait_s:
            time.sleep(play.wait_s)
        self.send_response(play.status)
        for name, value in {"Content-Length": str(len(play.body)), **play.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(play.body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def script() -> SimpleNamespace:
    """What plays are made of."""
    return SimpleNamespace(Play=Play, message=message, says=says, calls=calls, submits=submits)


@pytest.fixture
def server() -> Iterator[Server]:
    """A running endpoint."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def environment(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the diagnoser at the server, the cache at an empty folder."""
    for name, value in {
        "BASE_URL": server.url,
        "MODEL": "scripted",
        "API_KEY": KEY,
        "BACKOFF_S": "0.01",
        "PRICE_INPUT": "2",
        "PRICE_CACHED_INPUT": "1",
        "PRICE_OUTPUT": "8",
    }.items():
        monkeypatch.setenv(f"EVALHARNESS_LLM_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(environment: None, tiny_suite: Path) -> Callable[..., Result]:
    """Return a function that runs `evalharness run -d llm` on the small suite."""

    def run(*arguments: str) -> Result:
        given = ["run", "-d", "llm", "--suite", str(tiny_suite), "--no-track", "--json"]
        return CliRunner().invoke(cli, [*given, *arguments])

    return run


@pytest.fixture
def ask(environment: None, tiny_suite: Path, tiny_ids: dict[str, str]) -> Callable[..., Any]:
    """Return a function that asks about one case of the small suite and returns its answer."""

    def ask(role: str = "loader_dev", *arguments: str) -> dict[str, Any]:
        case = tiny_ids[role]
        given = ["ask", "-d", "llm", "--suite", str(tiny_suite), "--case", case, "--json"]
        result = CliRunner().invoke(cli, [*given, *arguments])
        assert result.exit_code == 0, result.output + repr(result.exception)
        lines = Path("results/tiny/llm/asked/answers.jsonl").read_text().splitlines()
        answer: dict[str, Any] = json.loads(lines[-1])
        path = Path(f"results/tiny/llm/asked/transcripts/{case}.json")
        return {**answer, "transcript": json.loads(path.read_text())}

    return ask
