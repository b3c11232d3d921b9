"""Handing cases to one diagnoser, one at a time, and saying what became of each."""

from __future__ import annotations

import base64
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cases.errors import HarnessError, InputError
from harness.child import diagnoser as child
from harness.child.forked import ANSWER_BYTES
from harness.sandbox.canary import probe, reached
from harness.sandbox.level import Level
from harness.sandbox.limits import Limits
from harness.sandbox.public_code import copy_public_code
from harness.sandbox.session import BrokenSessionError, LimitError, Session
from harness.sandbox.view import View

CANARY_TIMEOUT_S = 30.0
LETTERS: dict[bytes, Literal["error", "out_of_memory", "invalid"]] = {
    child.RAISED: "error",
    child.OUT_OF_MEMORY: "out_of_memory",
    child.UNREADABLE: "invalid",
}


@dataclass(frozen=True)
class Task:
    """What is run on every case: a program, or a function that the child imports."""

    target: Mapping[str, Any]
    argv: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    shown: tuple[Path, ...] = ()


@dataclass(frozen=True)
class CaseRun:
    """What became of one case; `answer` is what the diagnoser said if the outcome is ok."""

    outcome: Literal["ok", "error", "timeout", "out_of_memory", "invalid"]
    answer: bytes = b""
    error: str = ""
    output: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class Place:
    """Where and how cases are run: level, limits, and what nothing may reach."""

    level: Level
    limits: Limits
    code: Path
    secrets: Mapping[str, Sequence[Path]]
    network: bool = False


@contextlib.contextmanager
def public_code() -> Iterator[Path]:
    """Yield a temporary folder with the code that diagnosers may see."""
    with tempfile.TemporaryDirectory(prefix="evalharness.") as folder:
        copy_public_code(Path(folder))
        yield Path(folder)


class Worker:
    """Runs one task on cases, in a zygote that is replaced whenever it may be tainted.

    Use it as a context manager and from one thread: the sandbox dies with its thread.

    Raises:
        InputError: the diagnoser cannot be imported.
        HarnessError: the sandbox does not start.
    """

    def __init__(self, task: Task, place: Place) -> None:
        self._task, self._place = task, place
        self._slot = Path(tempfile.mkdtemp(prefix="evalharness."))
        self._case = self._slot / "case"
        self._case.mkdir()
        self._session: Session | None = None
        self.needs: Any = None
        self.reached: list[str] | None = None

    def __enter__(self) -> Worker:
        try:
            self._renew()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the zygote and remove the last case."""
        if self._session:
            self._session.close()
        shutil.rmtree(self._slot, ignore_errors=True)

    def run(self, case_folder: Path) -> CaseRun:
        """Copy a case in, run the task on it, wipe it away."""
        return self.run_each(case_folder, [{}])[0]

    def run_each(self, case_folder: Path, given: Sequence[Mapping[str, Any]]) -> list[CaseRun]:
        """Copy a case in, run the task on it once for each of `given`, wipe it away.

        Args:
            case_folder: The case.
            given: Further arguments of the function, JSON-ready; a program takes none.
        """
        try:
            shutil.copytree(
                case_folder, self._case, copy_function=shutil.copyfile, dirs_exist_ok=True
            )
            return [self._run(arguments) for arguments in given]
        except OSError as error:
            raise HarnessError(f"the case must be handed over: {error}") from error
        finally:
            for path in self._case.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _run(self, given: Mapping[str, Any]) -> CaseRun:
        if self._session is None:
            try:
                self._renew()
            except InputError as error:  # it could be imported before
                return CaseRun("error", error=str(error))
        session, self._session = self._session, None
        assert session is not None
        limits = self._place.limits
        command = {"op": "command", "argv": self._task.argv}
        op = command if self._task.argv else {"op": "case", "given": dict(given)}
        try:
            reply = session.ask(**op, timeout_s=limits.timeout_s, folder=str(session.case))
        except LimitError as reached:
            used = session.peak_memory_bytes
            return CaseRun(reached.limit, seconds=reached.seconds, peak_memory_bytes=used)
        except BrokenSessionError as broken:
            return CaseRun("error", error=f"the diagnoser ended its own supervisor: {broken}")
        if self._task.argv or not reply["clean"]:
            session.close()
        else:
            self._session = session
        return _told(reply, bool(self._task.argv), session.peak_memory_bytes)

    def _renew(self) -> None:
        """Start a zygote, send the canary where none was sent yet, import the diagnoser."""
        task, place = self._task, self._place
        hidden = tuple(path for paths in place.secrets.values() for path in paths)
        view = View(
            place.code, self._case, task.shown, hidden, place.limits.scratch_bytes, place.network
        )
        session = self._session = Session(view, place.limits, place.level)
        try:
            if self.reached is None:
                with probe(place.secrets) as attempts:
                    self.reached = reached(session.ask("canary", CANARY_TIMEOUT_S, probe=attempts))
        except (BrokenSessionError, LimitError) as error:
            self._session = None
            raise HarnessError(f"the sandbox must start: {error}") from error
        if not task.argv:
            self._import(session)
        session.settle()

    def _import(self, session: Session) -> None:
        fields = {"target": dict(self._task.target), "settings": self._task.settings}
        try:
            reply = session.ask("import", self._place.limits.import_timeout_s, **fields)
            error = reply["error"]
        except (BrokenSessionError, LimitError) as broken:
            error = f"{type(broken).__name__}: {broken}"
        if error:
            session.close()
            self._session = None
            raise InputError(
                f"must be importable where diagnosers run:\n{error}", where="diagnoser"
            )
        self.needs = reply["needs"]


def _told(reply: Mapping[str, Any], program: bool, peak_memory_bytes: int) -> CaseRun:
    """Turn the zygote's reply into an outcome."""
    answer = base64.b64decode(reply["answer"])
    common = {
        "output": reply["output"],
        "seconds": reply["seconds"],
        "cpu_s": reply["cpu_s"],
        "peak_memory_bytes": max(peak_memory_bytes, reply["peak_memory_bytes"]),
    }
    status = reply["status"]
    if status != 0:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return CaseRun("error", error=f"ended by {how}\n{reply['output']}", **common)
    if reply["answer_overflowed"]:
        must = f"the answer must be at most {ANSWER_BYTES} bytes"
        return CaseRun("invalid", error=must, **common)
    if program:
        return CaseRun("ok", answer, **common)
    letter, text = answer[:1], answer[1:]
    if letter == child.OK:
        return CaseRun("ok", text, **common)
    if letter in LETTERS:
        return CaseRun(LETTERS[letter], error=text.decode(errors="replace"), **common)
    return CaseRun("error", error="ended without an answer", **common)
