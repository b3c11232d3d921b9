"""Building the groups of a suite: by several processes, in any order, resumably.

What is finished stands in a journal, so that a build that was stopped goes on where it was. The
suite's digest depends on neither, nor on what lay in the folder before.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Literal, Protocol

from cases.bundle import SUITE_FILE
from cases.errors import InputError
from injectors.build import Places
from injectors.finish import drop_strangers, finish, forget_refused, is_finished
from injectors.leftovers import clean_suite, sole_recorder
from injectors.matrix import JournalLine, enough_room, finished, note
from injectors.null_study import cut_torn_line
from injectors.sim.backends import check_wanted
from injectors.sim.made import MadeGroup
from injectors.workers import Workers
from injectors.write_group import write_group

Progress = Callable[[str, int, int], None]
LabelsKind = Literal["public", "private_seed"]
ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cases", "injectors")
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class Buildable(Protocol):
    """One group of a suite: it can be sent to another process and made there."""

    @property
    def name(self) -> str:
        """The group's name in labels."""

    @property
    def digest(self) -> str:
        """By which a finished group is recognised."""

    def make(self) -> MadeGroup:
        """Simulate and label the group's cases."""


def silent(phase: str, done: int, of: int) -> None:
    """Tell nobody how far it is."""


def build_groups(
    groups: Sequence[Buildable],
    target: Places,
    name: str,
    title: str,
    kind: LabelsKind = "public",
    jobs: int | None = None,
    progress: Progress = silent,
) -> list[JournalLine]:
    """Build the groups that the journal does not list yet, then finish the suite.

    Cases of other groups are taken away: the suite is what `groups` say.

    Returns:
        What became of each group, in the order of `groups`.

    Raises:
        InputError: The folders can't be written to, or somebody else builds there.
        HarnessError: There is no room.
    """
    check_wanted()
    with writable(target.cases), sole_recorder(target.cases), enough_room(target.cases):
        clean_suite(target.cases, target.labels, lambda sentence: None)
        journal = target.labels.parent / f"{target.labels.name}.journal.jsonl"
        cut_torn_line(journal)
        known = finished(journal)
        keys = [recognised_by(group) for group in groups]
        if not is_finished(target, name, [known.get(key) for key in keys]):
            (target.cases / SUITE_FILE).unlink(missing_ok=True)  # half a suite has none
            forget_refused(target)
            known = {key: known[key] for key in keys if key in known and _whole(known[key], target)}
            drop_strangers(target, known.values())
            todo = {key: group for key, group in zip(keys, groups, strict=True) if key not in known}
            with Workers(jobs) as workers:
                for line in _made(todo, target, len(keys), workers, progress):
                    note(journal, line)
                    known[line.digest] = line
                finish(target, name, title, kind, known.values(), workers, progress)
        return [known[key] for key in keys]


def _made(
    todo: Mapping[str, Buildable],
    target: Places,
    count: int,
    workers: Workers,
    progress: Progress,
) -> Iterator[JournalLine]:
    """Make groups, in any order."""
    before = count - len(todo)
    progress("groups", before, count)
    lines = workers.each(partial(_make, target), list(todo.items()))
    for done, line in enumerate(lines, before + 1):
        yield line
        progress("groups", done, count)


def _make(target: Places, item: tuple[str, Buildable]) -> JournalLine:
    key, group = item
    return write_group(group.make(), key, target)


def _whole(line: JournalLine, target: Places) -> bool:
    """Whether all that a group made is there, in its place."""
    return all(
        (target.cases / case).is_dir() and (target.labels / f"{case}.json").is_file()
        for case in line.made
    )


def recognised_by(group: Buildable) -> str:
    """Return by what a finished group is recognised: what it is, and what makes it."""
    return f"{group.digest}-{_source()}"


@cache
def _source() -> str:
    """Digest of the code that makes cases: what another version of it made is made again."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            digest.update(f"{file.relative_to(ROOT).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Turn a folder that can't be written to into an error that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        found = f"{error.filename}: {error.strerror}"
        must = "must be a folder that can be written to"
        raise InputError(must, where=folder, found=found) from None
