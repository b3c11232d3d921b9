"""The official SDK's clients, each in an environment of its own, work with `evalharness mcp`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools import run_tool

SERVER = (sys.executable, "-c", "from harness.cli import main; main()", "mcp")
NEW = """
import asyncio, json, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main():
    mode, command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(stdio_client(server), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        good = await client.call_tool("run_sql", {"sql": "SELECT count(*) AS n FROM steps"})
        bad = await client.call_tool("run_sql", {"sql": "DROP TABLE steps"})
        print(json.dumps([client.protocol_version, tools, good.content[0].text, bad.is_error]))

asyncio.run(main())
"""
OLD = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    mode, command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(server) as pipes, ClientSession(*pipes) as client:
        version = (await client.initialize()).protocolVersion
        tools = [tool.name for tool in (await client.list_tools()).tools]
        good = await client.call_tool("run_sql", {"sql": "SELECT count(*) AS n FROM steps"})
        bad = await client.call_tool("run_sql", {"sql": "DROP TABLE steps"})
        print(json.dumps([version, tools, good.content[0].text, bad.isError]))

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("sdk", "script", "mode", "version"),
    [
        ("mcp", NEW, "auto", "2026-07-28"),
        ("mcp", NEW, "legacy", "2025-11-25"),
        ("mcp-1", OLD, "any", "2025-11-25"),
    ],
)
def test_official_client(
    tiny_suite: Path, tiny_ids: dict[str, str], sdk: str, script: str, mode: str, version: str
) -> None:
    case = str(tiny_suite / tiny_ids["loader_dev"])
    said: Any = json.loads(run_tool(sdk, script, mode, *SERVER, "--case", case))
    tools = ["list_tables", "run_sql", "read_configuration", "taxonomy", "check_diagnosis"]
    assert said == [version, tools, "n\n48\n(1 row)", True]
