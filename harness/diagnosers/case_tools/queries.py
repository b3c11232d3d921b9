"""A case's queries in a process of their own, which ends when one takes too long or too much.

DuckDB's own limits of time and memory do not hold while it evaluates a join, and a query that a
model wrote must cost that query and not the case.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import duckdb

from cases.case import Case
from cases.errors import EvalHarnessError, QueryError
from cases.sql import SETTINGS
from harness.child.evidence import read
from harness.child.process import die_with_parent
from harness.child.query_rules import RefusedError, check_query
from harness.diagnosers.case_tools.rows import as_text

POLL_S = 0.05
COUNTED_ROWS = 100_000
Answer = dict[str, Any]


@dataclass(frozen=True)
class QueryLimits:
    """What one query may cost.

    Attributes:
        timeout_s: Wall time, reading the tables that it names for the first time included.
        memory_bytes: Resident memory of the process that runs it.
    """

    timeout_s: float = 20.0
    memory_bytes: int = 3 * 2**30


class Queries:
    """Runs queries over one case, one at a time; a context manager.

    The process is forked before anything is read, and again after it had to be ended.
    """

    def __init__(self, case: Case, limits: QueryLimits | None = None) -> None:
        self._case, self._limits = case, limits or QueryLimits()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Queries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, sql: str) -> str:
        """Run one SELECT and return its rows as text; raises QueryError."""
        return str(self._ask("rows", sql)["text"])

    def evidence(self, sql: str) -> Answer:
        """Read one number, see `harness.child.evidence.read`; raises QueryError."""
        return self._ask("evidence", sql)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process:
            self._process.kill()
            self._process.join()
        if self._pipe:
            self._pipe.close()
        self._process = self._pipe = None

    def _ask(self, what: str, sql: str) -> Answer:
        pipe = self._pipe or self._start()
        try:
            pipe.send_bytes(json.dumps([what, sql]).encode())
            self._wait(pipe, sql)
            answer: Answer = json.loads(pipe.recv_bytes())
        except (OSError, EOFError):
            self.close()
            raise QueryError("must not end the process that runs it", where="sql") from None
        if "refused" in answer:
            raise QueryError(answer["refused"])
        return answer

    def _wait(self, pipe: Connection, sql: str) -> None:
        """Wait for a reply within the limits; otherwise end the process."""
        limits, end = self._limits, time.monotonic() + self._limits.timeout_s
        while not pipe.poll(POLL_S):
            must = ""
            if time.monotonic() > end:
                must = f"must end within {limits.timeout_s:g} s"
            elif self._memory_bytes() > limits.memory_bytes:
                must = f"must hold at most {limits.memory_bytes / 2**20:.0f} MiB"
            if must:
                self.close()
                raise QueryError(must, where="sql", found=sql)

    def _memory_bytes(self) -> int:
        try:
            assert self._process
            pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0  # it has ended, which reading its reply will tell
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def _start(self) -> Connection:
        context = get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._case, theirs), daemon=True)
        with warnings.catch_warnings():
            # Python warns of locks that other threads may hold; a query needs none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()
        return self._pipe


def _serve(case: Case, pipe: Connection) -> None:
    """Answer until the parent ends this process, or is gone."""
    die_with_parent()  # a fork holds a copy of the parent's end too, so that no end of file comes
    answers: dict[str, Callable[[Case, str], Answer]] = {"rows": _rows, "evidence": _evidence}
    while True:
        what, sql = json.loads(pipe.recv_bytes())
        pipe.send_bytes(json.dumps(answers[what](case, sql)).encode())


def _rows(case: Case, sql: str) -> Answer:
    """The rules are those of evidence: what is asked may be cited, and asked again it is the same.

    That also makes the conversation the same, so that a cached one is found.
    """
    try:
        with duckdb.connect(":memory:", config=SETTINGS) as connection:
            check_query(connection, sql)
        return {"text": as_text(case.sql(sql, limit=COUNTED_ROWS))}
    except (RefusedError, EvalHarnessError, duckdb.Error) as error:
        return {"refused": " ".join(str(error).split())}


def _evidence(case: Case, sql: str) -> Answer:
    return read(case, sql, "run")
