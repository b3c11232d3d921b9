"""The socket itself: clients that say nothing, nonsense, or leave; and faults of our own."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cases.errors import HarnessError
from harness.llm.gateway import Asked, Gateway
from harness.llm.settings import from_environment
from harness.results import Answer
from harness.sandbox.worker import Task

ANSWER = Answer(case="case1", key="k", outcome="ok")
Say = Callable[..., bytes]


@pytest.fixture
def gateway(environment: None, server: Any) -> Iterator[Gateway]:
    asked = Asked(Path("results"), {"case1": "sha256:1"})
    with Gateway(from_environment(), "key", asked) as running:
        yield running


@pytest.fixture
def say(gateway: Gateway) -> Say:
    """Return a function that sends lines and returns what came back until the end."""

    def say(*lines: bytes) -> bytes:
        settings = gateway.task(Task({})).settings
        assert settings
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(settings["socket"])
            client.sendall(b"".join(line + b"\n" for line in lines))
            client.shutdown(socket.SHUT_WR)
            return client.makefile("rb").read()

    return say


def request(**fields: Any) -> bytes:
    return json.dumps({"messages": [], "tools": [], **fields}).encode()


def test_only_messages_and_tools_are_passed_on(say: Say, server: Any, script: Any) -> None:
    server.play = lambda body, number: script.says("hi")
    reply = say(b'{"case": "case1"}', request(model="dearest", max_tokens=10**9))
    assert json.loads(reply)["message"]["content"] == "hi"
    ((_, body),) = server.requests
    assert body == {
        "model": "scripted",
        "temperature": 0,
        "max_tokens": 4096,
        "messages": [],
        "tools": [],
    }


@pytest.mark.parametrize("lines", [(), (b"",), (b"nonsense",), (b'{"case": "case1"}',)])
def test_client_that_leaves_early_is_no_fault(gateway: Gateway, say: Say, lines: Any) -> None:
    assert say(*lines) == b""
    gateway.check(ANSWER)


@pytest.mark.parametrize("lines", [(b'{"case": "other"}', request()), (b'{"what": 1}',)])
def test_fault_of_our_own_ends_the_run(gateway: Gateway, say: Say, lines: Any) -> None:
    assert say(*lines) == b""
    with pytest.raises(HarnessError, match="the line to the model must work: KeyError"):
        gateway.check(ANSWER)


def test_results_that_cannot_be_written_end_the_run(gateway: Gateway, say: Say) -> None:
    Path("results").write_text("in the way")
    say(b'{"case": "case1"}')
    with pytest.raises(HarnessError, match="the line to the model must work"):
        gateway.check(ANSWER)
    Path("results").unlink()


def test_closing_does_not_wait_for_a_slow_model(
    environment: None, server: Any, script: Any
) -> None:
    """The model takes longer than what conversations get to end; pauses are cut short."""
    server.play = lambda body, number: script.Play(b"", 429, {"Retry-After": "60"})
    asked = Asked(Path("results"), {"case1": "sha256:1"})
    start = time.monotonic()
    with Gateway(from_environment(), "", asked) as gateway:
        settings = gateway.task(Task({})).settings
        assert settings
        client = socket.socket(socket.AF_UNIX)
        client.connect(settings["socket"])
        client.sendall(b'{"case": "case1"}\n' + request() + b"\n")
        while not server.requests:
            time.sleep(0.01)
    client.close()
    assert time.monotonic() - start < 10
    transcript = json.loads(Path("results/transcripts/case1.json").read_text())
    assert transcript["end"].startswith("no reply: ")
