"""Connecting a run to its language model, where it has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cases.bundle import Suite
from harness.llm.gateway import Asked, Gateway
from harness.llm.settings import ModelSettings, api_key
from harness.repeats import REPEATS
from harness.results import Answer
from harness.sandbox.worker import Task


@dataclass(frozen=True)
class Connection:
    """What a run needs of its model.

    Attributes:
        task: What the sandbox runs.
        check: Called with each answer before it is kept; raises what ends the run.
    """

    task: Task
    check: Callable[[Answer], None] = lambda answer: None


@contextmanager
def connected(
    settings: ModelSettings | None, task: Task, folder: Path, suite: Suite
) -> Iterator[Connection]:
    """Yield the connection of one run; one that does nothing for diagnosers without a model.

    Args:
        settings: The model, None if there is none.
        task: What the sandbox is to run.
        folder: The results folder.
        suite: The cases that it is asked about.
    """
    if settings is None:
        yield Connection(task)
        return
    asked = Asked(folder, suite.info.cases, asking_of(folder))
    with Gateway(settings, api_key(), asked) as gateway:
        yield Connection(gateway.task(task), gateway.check)


def asking_of(folder: Path) -> int:
    """Return which asking a results folder is of: a repetition is meant to ask again.

    >>> asking_of(Path("results/tiny/llm")), asking_of(Path("results/tiny/llm/repeats/3"))
    (1, 3)
    """
    return int(folder.name) if folder.parent.name == REPEATS and folder.name.isdigit() else 1
