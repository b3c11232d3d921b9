"""Endpoints that fail: what is tried again, what costs a case, and what ends the run."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cases.errors import HarnessError, InputError

HEALTHY = {"verdict": "healthy"}
ANSWERS = Path("results/tiny/llm/answers.jsonl")
Ask = Callable[..., dict[str, Any]]
Run = Callable[..., Result]


def failing(server: Any, script: Any, bad: Any, times: int) -> None:
    """Fail so often, then answer that all is well."""
    good = script.submits(HEALTHY)
    server.play = lambda request, number: bad if number <= times else good


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_passing_failure_is_tried_again(ask: Ask, server: Any, script: Any, status: int) -> None:
    failing(server, script, script.Play(b"busy", status), 2)
    found = ask()
    assert found["outcome"] == "ok"
    assert found["transcript"]["exchanges"][0]["attempts"] == 3


def test_pause_that_the_server_asks_for(ask: Ask, server: Any, script: Any) -> None:
    failing(server, script, script.Play(b"", 429, {"Retry-After": "0.7"}), 1)
    start = time.monotonic()
    assert ask()["outcome"] == "ok"
    assert time.monotonic() - start > 0.7


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>", "must be a chat completion (JSONDecodeError"),
        (b"{}", "must be a chat completion (KeyError"),
        (b'{"choices": []}', "must be a chat completion (IndexError"),
        (b'{"choices": [{"message": "hi"}]}', "the message is no object"),
    ],
)
def test_rubbish_to_the_end_costs_the_case(
    ask: Ask, server: Any, script: Any, body: bytes, says: str
) -> None:
    failing(server, script, script.Play(body), 99)
    found = ask()
    assert (found["outcome"], len(server.requests)) == ("error", 5)
    assert says in found["error"]
    assert "after 5 attempts" in found["error"]


@pytest.mark.parametrize(("status", "requests"), [(400, 1), (413, 1), (302, 1), (500, 5)])
def test_refused_request_costs_the_case(
    ask: Ask, server: Any, script: Any, status: int, requests: int
) -> None:
    headers = {"Location": f"{server.url}/elsewhere"}
    failing(server, script, script.Play(b"context too long", status, headers), 99)
    found = ask()
    assert (found["outcome"], len(server.requests)) == ("error", requests)
    assert f"answered {status}: context too long" in found["error"]
    assert "context too long" in found["transcript"]["end"]


def test_reply_that_takes_too_long(
    ask: Ask, server: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALHARNESS_LLM_TIMEOUT_S", "0.3")
    monkeypatch.setenv("EVALHARNESS_LLM_ATTEMPTS", "2")
    failing(server, script, replace(script.submits(HEALTHY), wait_s=1), 99)
    found = ask()
    assert found["outcome"] == "error"
    assert "must reply within 0.3 s, after 2 attempts" in found["error"]


@pytest.mark.parametrize(("status", "requests"), [(401, 1), (403, 1), (404, 1), (429, 5)])
def test_endpoint_that_serves_nobody_ends_the_run(
    run: Run, server: Any, script: Any, status: int, requests: int
) -> None:
    echo = b"no: sk-very-secret-0123456789"
    failing(server, script, script.Play(echo, status), 99)
    result = run()
    assert isinstance(result.exception, HarnessError)
    assert f"answered {status}: no: [key]" in str(result.exception)
    assert len(server.requests) == requests
    assert not ANSWERS.exists()


def test_refused_connection_ends_the_run_and_it_goes_on_later(
    run: Run, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("EVALHARNESS_LLM_BASE_URL", f"http://127.0.0.1:{port}/v1")
    result = run()
    assert isinstance(result.exception, HarnessError)
    assert "must be reachable" in str(result.exception)
    assert not ANSWERS.exists()
    monkeypatch.setenv("EVALHARNESS_LLM_BASE_URL", server.url)
    assert json.loads(run().stdout)[0]["outcomes"] == {"ok": 9}


def test_waiting_for_a_busy_endpoint_is_no_slow_model(run: Run, server: Any, script: Any) -> None:
    failing(server, script, script.Play(b"busy", 429, {"Retry-After": "30"}), 99)
    result = run("--timeout", "2")
    assert isinstance(result.exception, HarnessError)
    assert "must serve within the time of a case" in str(result.exception)
    assert not ANSWERS.exists()


def test_spending_has_an_end_and_answers_are_kept(
    run: Run, server: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply costs 0.00024, so that the fourth is not sent any more."""
    failing(server, script, None, 0)
    monkeypatch.setenv("EVALHARNESS_LLM_MAX_COST", "0.0007")
    result = run()
    assert isinstance(result.exception, InputError)
    assert "EVALHARNESS_LLM_MAX_COST" in str(result.exception)
    assert (len(server.requests), len(ANSWERS.read_text().splitlines())) == (3, 3)
    monkeypatch.delenv("EVALHARNESS_LLM_MAX_COST")
    assert json.loads(run().stdout)[0]["outcomes"] == {"ok": 9}
    assert len(server.requests) == 9


def test_endpoint_that_does_not_count_is_estimated(ask: Ask, server: Any, script: Any) -> None:
    """Without prices there is no cost, and an estimate says that it is one."""
    document = json.loads(script.submits(HEALTHY).body)
    del document["usage"]
    server.play = lambda request, number: script.Play(json.dumps(document).encode())
    tokens = ask()["transcript"]["tokens"]
    assert tokens["estimated"]
    assert 500 < tokens["prompt_tokens"] < 20_000


def test_socket_that_cannot_be_made(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a Unix socket holds 107 characters at most."""
    deep = Path("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(deep.resolve()))
    result = run("--isolation", "process")
    assert isinstance(result.exception, HarnessError)
    assert "must be able to listen" in str(result.exception)


def test_connection_that_breaks_off(ask: Ask, server: Any, script: Any) -> None:
    failing(server, script, script.Play(b"{", 200, {"Content-Length": "500"}), 1)
    assert ask()["outcome"] == "ok"
    assert len(server.requests) == 2
