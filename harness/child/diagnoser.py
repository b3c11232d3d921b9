"""Importing a diagnoser and asking it about one case."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

TRACEBACK_CHARACTERS = 8000
OK, RAISED, OUT_OF_MEMORY, UNREADABLE = b"A", b"E", b"M", b"I"

Diagnose = Callable[[Any], Any]


def load(target: dict[str, Any], settings: dict[str, Any] | None) -> tuple[Diagnose, Any]:
    """Import what `target` names: `function` of `module`, or of `file` with its `name`.

    Returns:
        The function, with `settings` bound if there are any, and what it says it needs.
    """
    sys.path.extend(target["search"])
    module = (
        _from_file(target["name"], target["file"])
        if target.get("file")
        else importlib.import_module(target["module"])
    )
    found: Any = module
    for part in target["function"].split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{target['function']} must be callable, found {type(found).__name__}")
    needs = getattr(found, "needs", None) or getattr(module, "NEEDS", None)
    if settings is not None:
        if prepare := getattr(module, "prepare", None):
            prepare(settings)  # once, not in the process of each case
        found = functools.partial(found, settings=settings)
    return found, needs


def _from_file(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} must be a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickling and dataclasses look modules up by name
    spec.loader.exec_module(module)
    return module


def ask(diagnose: Diagnose, case_folder: str, answer_fd: int) -> None:
    """Write one letter and then the answer, or what went wrong, to `answer_fd`."""
    from cases.case import Case

    me = os.getpid()
    try:
        letter, text = OK, as_json(diagnose(Case.open(Path(case_folder))))
    except MemoryError:
        letter, text = OUT_OF_MEMORY, traceback.format_exc()
    except UnreadableAnswerError as error:
        letter, text = UNREADABLE, str(error)
    except BaseException:
        letter, text = RAISED, traceback.format_exc()[-TRACEBACK_CHARACTERS:]
    if os.getpid() != me:
        os._exit(0)  # the diagnoser forked, and this is its child: it has no say
    view = memoryview(letter + text.encode(errors="replace"))
    while view:
        view = view[os.write(answer_fd, view) :]


class UnreadableAnswerError(Exception):
    """What the diagnoser returned cannot be an answer."""


def as_json(answer: Any) -> str:
    """Serialise a `Diagnosis` or a dictionary; numpy numbers become plain ones.

    >>> as_json({"verdict": "healthy"})
    '{"verdict": "healthy"}'
    """
    if hasattr(answer, "model_dump"):
        answer = answer.model_dump(mode="json")
    if not isinstance(answer, dict):
        raise UnreadableAnswerError(f"must be a Diagnosis or a dict, found {type(answer).__name__}")
    try:
        return json.dumps(answer, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnreadableAnswerError(f"must be JSON ({error})") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a JSON value")
