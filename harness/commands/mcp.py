"""`evalharness mcp`: the tools on one case as an MCP server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cases.bundle import Suite, find_suite
from cases.case import Case
from harness.diagnosers.case_tools.__main__ import serve


@click.command("mcp")
@click.option("--case", "case", required=True, help="Id of a case, or a case's folder.")
@click.option("--suite", default="recorded_cpu", show_default=True, help="Name or folder.")
def command(case: str, suite: str) -> None:
    """Serve one case's public half to an agent, over standard input and output (MCP).

    The tools are those of the `llm` diagnoser: tables, SQL, configuration, taxonomy, and a check
    of an answer. Ends when the client closes its side.

    Example: evalharness mcp --case 18bc2b3cf4c5 --suite recorded_cpu
    """
    opened = Case.open(Path(case)) if Path(case).is_dir() else _of_suite(suite, case)
    serve(opened, sys.stdin.buffer, sys.stdout.buffer)


def _of_suite(name: str, case_id: str) -> Case:
    suite = Suite.open(find_suite(name))
    suite.verify_case(case_id)
    return suite.case(case_id)
