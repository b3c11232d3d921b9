"""`python -m harness.diagnosers.case_tools CASE_FOLDER`: the tools over standard input and output.

This is what `evalharness mcp` runs. An agent that is itself a diagnoser (`cmd:`) starts it by this
name, for where it runs the command line is out of reach.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import BinaryIO

from cases.case import Case
from cases.errors import EvalHarnessError
from harness.diagnosers.case_tools.mcp import McpServer
from harness.diagnosers.case_tools.tools import CaseTools


def serve(case: Case, inbox: BinaryIO, outbox: BinaryIO) -> None:
    """Serve one client, a message a line, until it closes its side."""
    # What a library prints is no message, and a client that is gone wants no reply.
    with redirect_stdout(sys.stderr), suppress(BrokenPipeError), CaseTools(case) as tools:
        server = McpServer(tools)
        for line in inbox:
            if not line.strip():
                continue
            reply = server.receive(line)
            if reply is not None:
                outbox.write(reply.encode() + b"\n")
                outbox.flush()


def main(arguments: list[str]) -> int:
    """Open the case and serve it; returns the exit status."""
    try:
        if len(arguments) != 1:
            raise SystemExit("usage: python -m harness.diagnosers.case_tools CASE_FOLDER")
        serve(Case.open(Path(arguments[0])), sys.stdin.buffer, sys.stdout.buffer)
    except EvalHarnessError as error:
        print(f"evalharness: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
