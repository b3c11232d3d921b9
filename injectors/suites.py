"""Suites that are built on demand, by simulation: the same content everywhere.

    build("simulated_smoke", out) -> out/suites/simulated_smoke and out/labels/simulated_smoke

A suite is a list of groups. Groups are built by several processes, in any order; what is finished
stands in a journal, so that a build that was stopped goes on where it was. The suite's digest
depends on neither.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from cases.bundle import Suite, write_suite_info
from cases.errors import InputError
from cases.schema import SuiteInfo
from cases.taxonomy import Taxonomy
from injectors.build import Places
from injectors.finish import name_false_rivals
from injectors.leftovers import clean_suite, sole_recorder
from injectors.matrix import JournalLine, enough_room, finished, note
from injectors.null_study import cut_torn_line
from injectors.sim.made import MadeGroup
from injectors.write_group import write_group

Progress = Callable[[str, int, int], None]
LabelsKind = Literal["public", "private_seed"]


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


@dataclass(frozen=True)
class SuitePlan:
    """A suite that can be built: its title and its groups under a private seed, or the public."""

    title: str
    groups: Callable[[int | None], Sequence[Buildable]]


def _smoke(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.sim.suite import smoke

    return smoke(private_seed)


def _core(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.sim.suite import core

    return core(private_seed)


def _fleet(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.fleet.suite import groups

    return groups(private_seed)


SUITES: dict[str, SuitePlan] = {
    "simulated_smoke": SuitePlan("Simulated jobs, a few of each kind", _smoke),
    "simulated_core": SuitePlan("Simulated jobs on up to 1,024 GPUs", _core),
    "simulated_fleet": SuitePlan("Simulated fleets with a regression in a segment", _fleet),
}


def plan_of(name: str) -> SuitePlan:
    """Return a suite's plan; an unknown name is an error that lists those there are."""
    if name not in SUITES:
        raise InputError(f"must be one of {sorted(SUITES)}", where="suite", found=name)
    return SUITES[name]


def suite_places(out: Path, folder: str) -> Places:
    """Return the folders of a built suite below `out`, where `find_suite` looks for them."""
    return Places(out / "suites" / folder, out / "labels" / folder)


def build(
    name: str,
    out: Path,
    private_seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = lambda phase, done, of: None,
) -> SuiteInfo:
    """Build a suite, or what is missing of it.

    Args:
        name: A name of SUITES.
        out: Folder that gets `suites/<name>` and `labels/<name>`.
        private_seed: Makes a suite nobody has seen, called `<name>_private`.
        jobs: Processes; one a core by default.
        progress: Told the phase, how much of it is done, and of how much.
    """
    plan = plan_of(name)
    folder = name if private_seed is None else f"{name}_private"
    target = suite_places(out, folder)
    kind: LabelsKind = "public" if private_seed is None else "private_seed"
    build_groups(plan.groups(private_seed), target, folder, plan.title, kind, jobs, progress)
    return Suite.open(target.cases).info


def build_groups(
    groups: Sequence[Buildable],
    target: Places,
    name: str,
    title: str,
    kind: LabelsKind = "public",
    jobs: int | None = None,
    progress: Progress = lambda phase, done, of: None,
) -> list[JournalLine]:
    """Build the groups that the journal does not list yet, then finish the suite.

    Returns:
        What became of each group, in the order of `groups`.
    """
    journal = target.labels.parent / f"{target.labels.name}.journal.jsonl"
    with sole_recorder(target.cases), enough_room(target.cases):
        clean_suite(target.cases, target.labels, lambda sentence: None)
        cut_torn_line(journal)
        known = {digest: line for digest, line in finished(journal).items() if _whole(line, target)}
        _drop_strangers(target, [known[g.digest] for g in groups if g.digest in known])
        todo = [group for group in groups if group.digest not in known]
        with _pool(jobs) as pool:
            progress("groups", len(groups) - len(todo), len(groups))
            futures = [pool.submit(_build_group, group, target) for group in todo]
            for done, future in enumerate(as_completed(futures), len(groups) - len(todo) + 1):
                line = future.result()
                note(journal, line)
                known[line.digest] = line
                progress("groups", done, len(groups))
            lines = [known[group.digest] for group in groups]
            if any(line.made for line in lines):
                _finish(target, name, title, kind, pool, progress)
    return lines


def _finish(
    target: Places,
    name: str,
    title: str,
    kind: LabelsKind,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> None:
    taxonomy = Taxonomy.load()
    confused = name_false_rivals(target, taxonomy, pool, progress)
    for case, rival in confused.items():
        _refuse(target, case, f"its witness is true on its rival {rival} as well")
    write_suite_info(target.cases, name, title, kind, taxonomy, target.labels)


def _build_group(group: Buildable, target: Places) -> JournalLine:
    return write_group(group.make(), group.digest, target)


def refused_note(target: Places, case: str) -> Path:
    """Return the file that says why a case was taken out after it was made."""
    return target.labels / "refused" / f"{case}.txt"


def _refuse(target: Places, case: str, reason: str) -> None:
    file = refused_note(target, case)
    file.parent.mkdir(exist_ok=True)
    file.write_text(reason + "\n", encoding="utf-8")
    shutil.rmtree(target.cases / case)
    (target.labels / f"{case}.json").unlink()


def _whole(line: JournalLine, target: Places) -> bool:
    """Whether all that a group made is still there, or was refused afterwards."""
    return all(
        (target.cases / case).is_dir() or refused_note(target, case).exists() for case in line.made
    )


def _drop_strangers(target: Places, lines: Sequence[JournalLine]) -> None:
    """Remove cases that no finished group of this plan made: of an older plan, or half done."""
    wanted = {case for line in lines for case in line.made}
    for folder in target.cases.glob("[!.]*") if target.cases.is_dir() else ():
        if folder.is_dir() and folder.name not in wanted:
            shutil.rmtree(folder)
    for label in target.labels.glob("*.json") if target.labels.is_dir() else ():
        if label.stem not in wanted:
            label.unlink()


@contextmanager
def _pool(jobs: int | None) -> Iterator[ProcessPoolExecutor]:
    """Processes that start clean; what waits is dropped when the build is stopped."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs or os.cpu_count() or 1, mp_context=context)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
