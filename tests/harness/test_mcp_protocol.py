"""The MCP server message by message: what the specification demands, on a real case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cases.bundle import Suite
from harness.diagnosers.case_tools.mcp import CHECK, GREETED, META, STATED, McpServer
from harness.diagnosers.case_tools.queries import Queries
from harness.diagnosers.case_tools.tools import TOOLS, CaseTools

NO_METHOD = {"jsonrpc": "2.0", "id": 1, "method": 5}
LOADER = "SELECT avg(cpu_ns) / (SELECT avg(cpu_ns) FROM reference.loader) FROM loader"


@pytest.fixture
def fresh(tiny_suite: Path, tiny_ids: dict[str, str]) -> Iterator[McpServer]:
    """A server that nobody has spoken to."""
    case = Suite.open(tiny_suite).case(tiny_ids["loader_dev"])
    with CaseTools(case, Queries(case)) as tools:
        yield McpServer(tools)


def send(server: McpServer, document: Any) -> Any:
    reply = server.receive(json.dumps(document))
    return None if reply is None else json.loads(reply)


def ask(server: McpServer, method: str, params: Any = None, **fields: Any) -> Any:
    given = {} if params is None else {"params": params}
    return send(server, {"jsonrpc": "2.0", "id": 7, "method": method, **given, **fields})


def initialize(server: McpServer, version: str = GREETED[0]) -> Any:
    client = {"capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    reply = ask(server, "initialize", {"protocolVersion": version, **client})
    assert send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    return reply["result"]


@pytest.fixture
def server(fresh: McpServer) -> McpServer:
    initialize(fresh)
    return fresh


def call(server: McpServer, name: str, /, **arguments: Any) -> tuple[str, bool]:
    result = ask(server, "tools/call", {"name": name, "arguments": arguments})["result"]
    (content,) = result["content"]
    assert content["type"] == "text"
    return content["text"], result["isError"]


@pytest.mark.parametrize("version", GREETED)
def test_known_version_is_kept(fresh: McpServer, version: str) -> None:
    result = initialize(fresh, version)
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "evalharness"


def test_unknown_version_is_answered_with_the_latest(fresh: McpServer) -> None:
    assert initialize(fresh, "2199-01-01")["protocolVersion"] == GREETED[0]


def test_nothing_but_ping_before_initialize(fresh: McpServer) -> None:
    assert ask(fresh, "ping")["result"] == {}
    assert ask(fresh, "tools/list")["error"]["code"] == -32600
    initialize(fresh)
    assert "result" in ask(fresh, "tools/list")
    assert ask(fresh, "initialize", {"protocolVersion": GREETED[0]})["error"]["code"] == -32600


def test_every_tool_is_listed_with_a_schema(server: McpServer) -> None:
    tools = ask(server, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == [*TOOLS, CHECK]
    for tool in tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"]
    assert ask(server, "tools/list", {"cursor": "2"})["error"]["code"] == -32602


def test_tools_read_the_case(server: McpServer) -> None:
    text, failed = call(server, "run_sql", sql=LOADER + " -- grown")
    assert not failed
    assert float(text.splitlines()[1]) == pytest.approx(4, rel=0.05)
    listed, _ = call(server, "list_tables")
    assert "loader (48 rows; reference: 48 rows): One row per batch" in listed
    assert "  cpu_ns int: CPU time that the worker used for it" in listed
    assert json.loads(call(server, "read_configuration")[0])["question"] == "regression"
    assert "confused with" in call(server, "taxonomy", name="dataloader_cpu_bound")[0]
    assert "dataloader_cpu_bound: " in call(server, "taxonomy")[0]


def test_query_that_is_refused_is_told_to_the_model(server: McpServer) -> None:
    text, failed = call(server, "run_sql", sql="COPY steps TO '/tmp/stolen.csv'")
    assert failed
    assert "must be one SELECT" in text
    text, failed = call(server, "run_sql", query="SELECT 1")
    assert (text, failed) == ("run_sql: sql: Field required (and 1 more)", True)


def test_answer_is_checked(server: McpServer) -> None:
    finding = {"cause": "dataloader_cpu_bound", "evidence": [{"sql": LOADER, "value": 4.0}]}
    text, failed = call(server, CHECK, verdict="faulty", findings=[finding])
    assert not failed, text
    finding["evidence"] = [{"sql": LOADER, "value": 2.0}]
    text, failed = call(server, CHECK, verdict="faulty", findings=[finding])
    assert failed
    assert "the number that is claimed, 2, and gives 4" in text or "gives 3.9" in text


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32601),
        (NO_METHOD, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}, -32602),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "run_sql", "arguments": "SELECT 1"},
            },
            -32602,
        ),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], -32600),
        ("ping", -32600),
        (None, -32600),
    ],
)
def test_errors_have_the_codes_of_json_rpc(server: McpServer, document: Any, code: int) -> None:
    reply = send(server, document)
    assert reply["error"]["code"] == code
    readable = code != -32600 or document == NO_METHOD
    assert reply["id"] == (1 if readable else None)


def test_line_that_is_no_json(server: McpServer) -> None:
    reply = json.loads(server.receive(b'{"jsonrpc": \xff\n') or "")
    assert (reply["id"], reply["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    "document",
    [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "no/such/notification"},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "no"}},
    ],
)
def test_what_asks_for_no_reply_gets_none(server: McpServer, document: Any) -> None:
    assert send(server, document) is None


def test_batches_in_the_version_that_has_them(fresh: McpServer) -> None:
    initialize(fresh, "2025-03-26")
    ping = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    assert send(fresh, [ping, note]) == [{"jsonrpc": "2.0", "id": "a", "result": {}}]
    assert send(fresh, [note]) is None
    assert send(fresh, [])["error"]["code"] == -32600


def test_fault_of_the_server_is_told_and_survived(
    server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(CaseTools, "call", broken)
    reply = ask(server, "tools/call", {"name": "list_tables"})
    assert reply["error"] == {"code": -32603, "message": "the server failed: KeyError: 'lost'"}
    assert ask(server, "ping")["result"] == {}


def stating(version: Any = STATED[0], **fields: Any) -> dict[str, Any]:
    meta = {META + "protocolVersion": version, META + "clientCapabilities": {}}
    return {**fields, "_meta": meta}


def test_requests_that_state_their_version_need_no_greeting(fresh: McpServer) -> None:
    found = ask(fresh, "server/discover", stating())["result"]
    assert found["supportedVersions"][0] == "2026-07-28"
    assert found["_meta"][META + "serverInfo"]["name"] == "evalharness"
    listed = ask(fresh, "tools/list", stating())["result"]
    assert (listed["resultType"], listed["cacheScope"], len(listed["tools"])) == (
        "complete",
        "public",
        5,
    )
    asked = stating(name="run_sql", arguments={"sql": "SELECT 41 + 1 AS v"})
    result = ask(fresh, "tools/call", asked)["result"]
    assert (result["resultType"], result["content"][0]["text"]) == ("complete", "v\n42\n(1 row)")
    assert "ttlMs" not in result
    assert ask(fresh, "ping", stating())["error"]["code"] == -32601
    assert ask(fresh, "tools/list")["error"]["code"] == -32600


def test_stated_version_that_is_not_served(fresh: McpServer) -> None:
    error = ask(fresh, "tools/list", stating("2027-01-01"))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}
    assert ask(fresh, "tools/list", stating(5))["error"]["code"] == -32602
    bare = {"_meta": {META + "protocolVersion": STATED[0]}}
    assert ask(fresh, "tools/list", bare)["error"]["code"] == -32602
