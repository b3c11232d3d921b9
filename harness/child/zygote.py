"""The zygote: imports the diagnoser once and forks a process per case.

It reads requests from one pipe and writes one reply to each: `canary`, `import`, `case`,
`command`. A request names a case's folder and nothing else about the case.
"""

from __future__ import annotations

import base64
import functools
import gc
import json
import os
import signal
import threading
import traceback
from pathlib import Path
from typing import Any

from harness.child import canary, diagnoser, process
from harness.child.forked import ANSWER_BYTES, Ended, Room, run_forked
from harness.child.protocol import Message, Reader, send

ANSWER_FILE = "answer.json"
# Imported before the fork so that no case pays for them.
WARM = ("numpy", "pandas", "pyarrow.parquet", "duckdb", "cases.case", "cases.sql", "cases.kineto")


class Zygote:
    """Serves one diagnoser; keeps nothing of a case.

    Args:
        inbox, outbox: Pipes of the harness, closed in every forked process.
        scratch: Where cases run.
        writable: All folders that a case may write to, wiped after each.
        scratch_bytes: The largest file that a case may write.
    """

    def __init__(
        self, inbox: int, outbox: int, scratch: Path, writable: list[Path], scratch_bytes: int
    ) -> None:
        self._inbox, self._outbox = Reader(inbox), outbox
        self._room = Room(scratch, tuple(writable), scratch_bytes, (inbox, outbox))
        self._diagnose: diagnoser.Diagnose | None = None

    def serve(self) -> None:
        """Answer requests until the harness closes its pipe."""
        answers = {
            "canary": self._canary,
            "import": self._import,
            "case": self._case,
            "command": self._command,
        }
        while True:
            try:
                request = self._inbox.receive()
            except EOFError:
                return
            assert request is not None
            reply = answers[request["op"]](request)
            send(self._outbox, {"id": request["id"], **reply})

    def _canary(self, request: Message) -> Message:
        """Try to reach what must be out of reach, as a diagnoser would."""
        probe = request["probe"]
        ended = run_forked(lambda fd: canary.report(probe, fd), self._room)
        if not ended.answer:
            return {"reached": None, "error": ended.output}
        return {"reached": json.loads(ended.answer)}

    def _import(self, request: Message) -> Message:
        for name in WARM:
            __import__(name)
        os.chdir(self._room.scratch)
        try:
            self._diagnose, needs = diagnoser.load(request["target"], request.get("settings"))
            json.dumps(needs)
        except BaseException:
            return {"error": traceback.format_exc()[-diagnoser.TRACEBACK_CHARACTERS :]}
        process.kill_descendants()
        gc.collect()
        gc.freeze()  # collecting in a child would copy every page it shares with this process
        return {"error": None, "needs": needs, "threads": threading.active_count()}

    def _case(self, request: Message) -> Message:
        """Ask about a case; `given` are further arguments for this case alone."""
        assert self._diagnose is not None
        ask, folder = functools.partial(self._diagnose, **request["given"]), request["folder"]
        return _reply(run_forked(lambda fd: diagnoser.ask(ask, folder, fd), self._room))

    def _command(self, request: Message) -> Message:
        """Run a program; its answer is the file it was told of, else its standard output."""
        file = self._room.scratch / ANSWER_FILE
        argv = [*request["argv"], request["folder"]]
        found: list[bytes] = []
        ended = run_forked(
            lambda fd: _execute(argv, file, fd), self._room, lambda: found.extend(_written(file))
        )
        reply = _reply(ended)
        if found:
            reply["answer"] = base64.b64encode(found[0][:ANSWER_BYTES]).decode()
            reply["answer_overflowed"] = len(found[0]) > ANSWER_BYTES
        return reply


def _execute(argv: list[str], answer_file: Path, answer_fd: int) -> None:
    os.dup2(answer_fd, 1)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and exec would keep it so
        signal.signal(ignored, signal.SIG_DFL)
    os.environ["EVALHARNESS_OUT"] = str(answer_file)
    os.execvp(argv[0], argv)


def _written(file: Path) -> list[bytes]:
    """Content of a plain file, one byte more than is allowed at most; nothing if absent."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    with os.fdopen(fd, "rb") as opened:
        return [content] if (content := opened.read(ANSWER_BYTES + 1)) else []


def _reply(ended: Ended) -> dict[str, Any]:
    return {**vars(ended), "answer": base64.b64encode(ended.answer).decode()}
