"""The results folder `<out>/<suite>/<diagnoser>/`: what was asked, and every answer.

run.json holds what was asked, answers.jsonl one line per answer, in the order they came.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cases.documents import canonical_json, parse_json, parse_record
from cases.errors import InputError
from cases.schema import Diagnosis, Record
from scorers import Outcome, Response

ANSWERS, RUN = "answers.jsonl", "run.json"
FAILED: tuple[Outcome, ...] = ("error", "timeout", "out_of_memory", "invalid")
TEXT_LIMIT = 4000
Line = TypeVar("Line", bound=Record)


class Answer(Record):
    """What became of one case.

    `key` says what the answer belongs to: the case's content and everything that was the same
    for the whole run. `error` and `output` are cut to 4,000 characters, keeping the end.
    """

    format: str = "evalharness.answer/1.0"
    case: str
    key: str
    outcome: Outcome
    diagnosis: Diagnosis | None = None
    error: str | None = None
    output: str | None = None
    ignored_keys: int = 0
    seconds: float | None = None
    cpu_s: float | None = None
    peak_memory_bytes: int | None = None

    def response(self, supported: tuple[bool | None, ...] | None = None) -> Response:
        """Return what the scorers judge, with what is known of its findings' evidence."""
        return Response(self.case, self.outcome, self.diagnosis, self.seconds, supported)


def run_key(parts: Mapping[str, Any]) -> str:
    """Digest of everything that is the same for all cases of a run."""
    return hashlib.sha256(canonical_json(dict(parts))).hexdigest()


def answer_key(run: str, case_digest: str) -> str:
    """Key of one answer: a run's key and the case's digest."""
    return hashlib.sha256(f"{run} {case_digest}".encode()).hexdigest()


def read_answers(path: Path) -> list[Answer]:
    """Read answers.jsonl, see `read_lines`."""
    return read_lines(path, Answer)


def read_lines(path: Path, model: type[Line]) -> list[Line]:
    """Read a record a line; a torn last one is left out, as its writer was interrupted.

    Raises:
        RecordError: another line breaks its record; names the line.
        InputError: the file cannot be read.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"must be readable ({error.strerror})", where=path) from None
    wheres = (f"{path}:{number}" for number in range(1, len(lines)))
    return [
        parse_record(parse_json(line, where), model, where)
        for line, where in zip(lines[:-1], wheres, strict=True)
        if line
    ]


def append_answer(path: Path, answer: Answer) -> None:
    """Add one answer, see `append_line`."""
    append_line(path, answer, answer.format)


def append_line(path: Path, record: Record, format: str) -> None:
    """Add one record under a lock, cutting off what an interrupted writer left torn."""
    document = record.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    line = json.dumps({"format": format, **document}, ensure_ascii=False) + "\n"
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # freed when the file is closed
        _cut_torn_line(file)
        file.write(line.encode())


def _cut_torn_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)


def latest(answers: Iterable[Answer], keys: Mapping[str, str]) -> dict[str, Answer]:
    """Return each case's last answer under its key; cases without one are left out."""
    return {answer.case: answer for answer in answers if keys.get(answer.case) == answer.key}


def shorten_text(text: str) -> str | None:
    """Return the last part of a text that is worth keeping, None if there is none."""
    return text[-TEXT_LIMIT:] or None
