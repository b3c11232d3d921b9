"""`evalharness mcp` as a real process, spoken to as an agent would."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.child.process import descendants
from harness.cli import cli
from harness.sandbox.level import why_no_bubblewrap

COMMAND = (sys.executable, "-c", "from harness.cli import main; main()", "mcp")
LOADER = "SELECT avg(cpu_ns) / (SELECT avg(cpu_ns) FROM reference.loader) FROM loader"
# A diagnoser that knows nothing but the protocol: it starts the server where it is run itself.
AGENT = """
import json, subprocess, sys

LOADER = "{loader}"
server = subprocess.Popen(
    [sys.executable, "-m", "harness.diagnosers.case_tools", sys.argv[-1]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)


def ask(method, **params):
    message = {{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}
    print(json.dumps(message), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline())["result"]


def use(name, **arguments):
    (content,) = ask("tools/call", name=name, arguments=arguments)["content"]
    return content["text"]


ask("initialize", protocolVersion="2025-06-18", capabilities={{}}, clientInfo={{"name": "a"}})
if "loader" not in json.loads(use("read_configuration"))["signals"]["present"]:
    answer = {{"verdict": "abstain", "missing_signals": ["loader"]}}
else:
    grown = float(use("run_sql", sql=LOADER).splitlines()[1])
    evidence = [{{"sql": LOADER, "value": grown}}]
    finding = {{"cause": "dataloader_cpu_bound", "evidence": evidence}}
    faulty = {{"verdict": "faulty", "findings": [finding]}}
    answer = faulty if grown > 2 else {{"verdict": "healthy"}}
    assert "follows the rules" in use("check_diagnosis", **answer)
print(json.dumps(answer))
server.stdin.close()
server.wait()
"""


class Client:
    """The least client there can be."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert reply["id"] == method
        return reply["result"]

    def use(self, name: str, **arguments: Any) -> str:
        (content,) = self.ask("tools/call", name=name, arguments=arguments)["content"]
        return str(content["text"])

    def hello(self) -> Any:
        client = {"clientInfo": {"name": "test", "version": "0"}, "capabilities": {}}
        return self.ask("initialize", protocolVersion="2025-06-18", **client)


@pytest.fixture
def start(tiny_suite: Path, tiny_ids: dict[str, str]) -> Iterator[Callable[..., Client]]:
    """Return a function that starts a server; by default on a case with a slow loader."""
    started = []

    def start(*arguments: str) -> Client:
        given = arguments or ("--suite", str(tiny_suite), "--case", tiny_ids["loader_dev"])
        started.append(Client(*given))
        return started[-1]

    yield start
    for client in started:
        client.process.kill()
        client.process.wait()
        for pipe in (client.process.stdin, client.process.stdout, client.process.stderr):
            assert pipe
            pipe.close()


def test_client_works_through_a_case(start: Callable[..., Client]) -> None:
    client = start()
    assert client.hello()["protocolVersion"] == "2025-06-18"
    assert len(client.ask("tools/list")["tools"]) == 5
    assert float(client.use("run_sql", sql=LOADER).splitlines()[1]) == pytest.approx(4, rel=0.05)
    assert client.process.stdin
    client.process.stdin.close()
    assert client.process.wait(10) == 0
    assert client.process.stderr
    assert client.process.stderr.read() == b""


def test_folder_of_a_case_will_do(
    start: Callable[..., Client], tiny_suite: Path, tiny_ids: dict[str, str]
) -> None:
    client = start("--case", str(tiny_suite / tiny_ids["twin_dev"]))
    client.hello()
    assert tiny_ids["twin_dev"] in client.use("read_configuration")


def test_server_that_is_killed_leaves_no_process(start: Callable[..., Client]) -> None:
    client = start()
    client.hello()
    client.use("run_sql", sql="SELECT 1")
    children = [*descendants(client.process.pid)]
    assert len(children) == 1
    client.process.kill()
    client.process.wait()
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_unknown_case_is_named(tiny_suite: Path) -> None:
    given = [*COMMAND, "--suite", str(tiny_suite), "--case", "nosuchcase"]
    ended = subprocess.run(given, capture_output=True, stdin=subprocess.DEVNULL, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "must be a case of tiny" in ended.stderr


@pytest.mark.parametrize("isolation", ["process", "bwrap"])
def test_agent_in_the_sandbox_is_evaluated(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    if isolation == "bwrap" and (why := why_no_bubblewrap()):
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT.format(loader=LOADER))
    given = ["--suite", str(tiny_suite), "--isolation", isolation, "--no-track", "--json"]
    result = CliRunner().invoke(cli, ["run", "-d", "cmd:python agent.py", *given])
    assert result.exit_code == 0, result.output + repr(result.exception)
    (summary,) = json.loads(result.stdout)
    assert summary["outcomes"] == {"ok": 9}
    assert summary["metrics"]["misled_rate"]["value"] == 0
    assert summary["isolation"]["sealed"] == (isolation == "bwrap")
