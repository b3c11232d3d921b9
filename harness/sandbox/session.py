"""One running zygote, seen from outside: started, asked, watched and ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from cases.errors import HarnessError
from harness.child.process import descendants
from harness.child.protocol import Message, Reader, send
from harness.sandbox import seccomp
from harness.sandbox.level import Level
from harness.sandbox.limits import Limits
from harness.sandbox.memory import tree_memory
from harness.sandbox.view import CASE, CODE, SCRATCH, SHARED_MEMORY, View, library_paths

POLL_S = 0.05
END_S = 5.0
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "RAYON", "ARROW")
SEPARATE = (
    *("--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session"),
)


class LimitError(Exception):
    """The diagnoser used more than it may; `limit` is the outcome that this means."""

    def __init__(self, limit: Literal["timeout", "out_of_memory"], seconds: float) -> None:
        super().__init__(limit)
        self.limit: Literal["timeout", "out_of_memory"] = limit
        self.seconds = seconds


class BrokenSessionError(Exception):
    """The zygote ended or answered nonsense."""


class Session:
    """A zygote in its isolation; use it as a context manager, from one thread.

    Args:
        view: What it may see.
        limits: What a case may cost.
        level: `bwrap`, or `process` for no isolation.

    Attributes:
        case: The case's folder as the diagnoser sees it.
        peak_memory_bytes: Most memory seen during the last request.
    """

    def __init__(self, view: View, limits: Limits, level: Level) -> None:
        self._view, self._limits, self._level = view, limits, level
        self._requests = 0
        self._standing: set[int] = set()
        self.peak_memory_bytes = 0
        self.case = CASE if level == "bwrap" else view.case
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the session
        self._scratch = None if level == "bwrap" else Path(tempfile.mkdtemp(prefix="evalharness."))
        try:
            self._process = self._start()
        except OSError as error:
            self._clear()
            raise HarnessError(f"the sandbox must start: {error}") from error
        assert self._process.stdin and self._process.stdout
        self._inbox = self._process.stdin.fileno()
        self._reader = Reader(self._process.stdout.fileno())

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def log(self) -> str:
        """The last of what the zygote itself printed."""
        if self._log.closed:
            return ""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        return self._log.read().decode(errors="replace").strip()

    def ask(self, op: str, timeout_s: float, **fields: Any) -> Message:
        """Send one request and return its reply, watching time and memory meanwhile.

        Raises:
            LimitError: time or memory ran out; the session has been closed.
            BrokenSessionError: the zygote is gone or answered nonsense; the session is closed.
        """
        self._requests += 1
        self.peak_memory_bytes = 0
        start = time.monotonic()
        try:
            send(self._inbox, {"id": self._requests, "op": op, **fields})
            while (reply := self._reader.receive(POLL_S)) is None:
                self._watch(time.monotonic() - start, timeout_s)
        except LimitError:
            self.close()
            raise
        except (OSError, EOFError, ValueError) as error:
            said = f"{error}\n{self.log}".strip()
            self.close()
            raise BrokenSessionError(said) from error
        if reply.get("id") != self._requests:
            self.close()
            raise BrokenSessionError("the reply belongs to no request")
        return reply

    def settle(self) -> None:
        """Take all processes that run now for the session's own, not a case's."""
        self._standing = {*descendants(self._process.pid)}

    def close(self) -> None:
        """End all of its processes and remove what they wrote."""
        if self._process.poll() is None:
            # A warden ends what it adopted; a process namespace ends with its first process.
            end = self._process.kill if self._level == "bwrap" else self._process.terminate
            end()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._clear()

    def _clear(self) -> None:
        self._log.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _watch(self, seconds: float, timeout_s: float) -> None:
        running = [pid for pid in descendants(self._process.pid) if pid not in self._standing]
        memory = tree_memory(running, self._limits.memory_bytes)
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory)
        if memory > self._limits.memory_bytes:
            raise LimitError("out_of_memory", seconds)
        if seconds > timeout_s:
            raise LimitError("timeout", seconds)

    def _start(self) -> subprocess.Popen[bytes]:
        python = [
            sys.executable,
            "-P",
            "-s",
            "-m",
            "harness.child",
            str(self._limits.scratch_bytes),
        ]
        if self._scratch:
            return self._open([*python, "--warden", str(self._scratch)], self._view.code)
        network = ["--share-net"] if self._view.network else []
        tail = ["--chdir", str(SCRATCH), "--", *python, str(SCRATCH), str(SHARED_MEMORY)]
        with tempfile.TemporaryFile() as file:
            filtered = []
            if code := seccomp.program():
                file.write(code)
                file.seek(0)
                filtered = ["--seccomp", str(file.fileno())]
            arguments = [*SEPARATE, *network, *self._view.arguments(), *filtered, *tail]
            return self._open(["bwrap", *arguments], CODE, (file.fileno(),))

    def _open(
        self, command: list[str], code: Path, fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        scratch = self._scratch or SCRATCH
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment(code, scratch),
            cwd=self._scratch or "/",
            pass_fds=fds,
            start_new_session=True,
        )


def environment(code: Path, scratch: Path) -> dict[str, str]:
    """Return all of a diagnoser's environment; nothing of the harness's own is handed on.

    One thread each: diagnosers run side by side, and sums of floats depend on the number.
    """
    path = (f"{sys.prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin")
    return {
        "PATH": ":".join(path),
        "LANG": "C.UTF-8",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "PYTHONPATH": ":".join(str(folder) for folder in (code, *library_paths())),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{library}_NUM_THREADS": "1" for library in THREADS},
    }
