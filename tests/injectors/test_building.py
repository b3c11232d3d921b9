"""Building suites: resumed, repeated, of another plan; groups are those of the tiny suite."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cases.bundle import RunData, Suite
from cases.case import Case, Recording
from cases.documents import read_record
from cases.errors import HarnessError, InputError, ScenarioError
from cases.schema import SuiteInfo
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from harness.checks import check_suite
from injectors import finish
from injectors.build import Places
from injectors.building import build_groups
from injectors.leftovers import sole_recorder
from injectors.matrix import JournalLine
from injectors.sim.made import MadeCase, MadeGroup

GROUPS = {
    "g0": ("twin_train", "loader_train", "contention_train"),
    "g1": ("twin_dev", "loader_dev"),
    "g2": ("twin_test", "contention_test", "undecidable_test", "decoy_test"),
}
# True of every case that is slow, whatever made it so.
SLOW = "SELECT avg(duration_ns) > 1.2 * (SELECT avg(duration_ns) FROM reference.steps) FROM steps"


def run_of(case: Recording) -> RunData:
    tables = {name: getattr(case, name) for name in case.table_paths}
    return RunData(tables, {rank: case.kineto_path(rank).read_bytes() for rank in case.trace_ranks})


@dataclass(frozen=True)
class Ready:
    """A group whose cases are ready; `make` can be told to fail."""

    name: str
    cases: tuple[MadeCase, ...]
    version: int = 0
    error: OSError | None = None

    @property
    def digest(self) -> str:
        return f"{self.name}-{self.version}"

    def make(self) -> MadeGroup:
        if self.error:
            raise self.error
        return MadeGroup(self.name, self.cases, {})


@pytest.fixture(scope="session")
def ready(tiny_suite: Path, tiny_ids: Mapping[str, str]) -> dict[str, Ready]:
    """The groups of the tiny suite, by name."""
    labels = tiny_suite.parents[1] / "labels" / "tiny"
    found = {}
    for name, roles in GROUPS.items():
        cases = []
        for role in roles:
            case = Case.open(tiny_suite / tiny_ids[role])
            run, truth = run_of(case), read_record(labels / f"{case.info.id}.json", Truth)
            assert case.reference is not None
            before = run_of(case.reference)
            cases.append(MadeCase(case.info, run.tables, run.traces, before, truth))
        found[name] = Ready(name, tuple(cases))
    return found


@pytest.fixture
def target(tmp_path: Path) -> Places:
    return Places(tmp_path / "suites" / "small", tmp_path / "labels" / "small")


def build(groups: Mapping[str, Ready], target: Places, jobs: int = 1) -> list[JournalLine]:
    return build_groups(list(groups.values()), target, "small", "Small", jobs=jobs)


def info(target: Places) -> SuiteInfo:
    return Suite.open(target.cases).info


def test_a_built_suite_holds_and_does_not_depend_on_the_processes(ready, target, tmp_path):
    lines = build(ready, target)
    assert [line.scenario for line in lines] == [*GROUPS]
    assert [len(line.made) for line in lines] == [3, 2, 4]
    Suite.open(target.cases).verify()
    checks = check_suite(target.cases, Taxonomy.load(), target.labels)
    assert not [check for check in checks if check.failures]
    other = Places(tmp_path / "again" / "small", tmp_path / "other" / "small")
    build(dict(reversed(ready.items())), other, jobs=2)
    assert info(other) == info(target)


def test_what_is_finished_is_not_made_again(ready, target):
    build(ready, target)
    before = {path: path.stat().st_mtime_ns for path in target.cases.rglob("*")}
    broken = {name: replace(group, error=OSError()) for name, group in ready.items()}
    build(broken, target)
    assert {path: path.stat().st_mtime_ns for path in target.cases.rglob("*")} == before


def test_a_build_that_failed_goes_on_where_it_was(ready, target, tmp_path):
    whole = Places(tmp_path / "whole" / "small", tmp_path / "whole-labels" / "small")
    build(ready, whole)
    half = ready | {"g2": replace(ready["g2"], error=OSError(errno.EIO, "broken"))}
    with pytest.raises(OSError, match="broken"):
        build(half, target)
    assert not (target.cases / "suite.json").exists()
    gone = {name: replace(ready[name], error=OSError()) for name in ("g0", "g1")}
    build(ready | gone, target)
    assert info(target) == info(whole)


def test_cases_of_another_plan_are_taken_away(ready, target, tiny_ids):
    build(ready, target)
    del (less := dict(ready))["g1"]
    build(less, target)
    dev = {tiny_ids[role] for role in GROUPS["g1"]}
    assert {*info(target).cases} == {*tiny_ids.values()} - dev
    assert {path.stem for path in target.labels.glob("*.json")} == {*info(target).cases}
    Suite.open(target.cases).verify()
    build(ready, target)
    assert {*info(target).cases} == {*tiny_ids.values()}


def test_a_group_that_changed_is_made_again(ready, target, tiny_ids):
    build(ready, target)
    fewer = replace(ready["g0"], version=1, cases=ready["g0"].cases[:2])
    build(ready | {"g0": fewer}, target)
    assert {*info(target).cases} == {*tiny_ids.values()} - {tiny_ids["contention_train"]}


@pytest.mark.parametrize("part", ["case", "label", "description"])
def test_what_is_missing_is_made_again(ready, target, tiny_ids, part):
    build(ready, target)
    before = info(target)
    case = tiny_ids["loader_dev"]
    if part == "case":
        shutil.rmtree(target.cases / case)
    elif part == "label":
        (target.labels / f"{case}.json").unlink()
    else:
        (target.cases / "suite.json").unlink()
    (target.cases / "stranger").mkdir()
    build(ready, target)
    assert info(target) == before
    Suite.open(target.cases).verify()


def confusable(ready: Mapping[str, Ready]) -> dict[str, Ready]:
    """The same with witnesses that are as true of one cause as of the other."""
    found = {}
    for name, group in ready.items():
        cases = tuple(
            replace(case, truth=case.truth.model_copy(update={"witness": witness}))
            for case in group.cases
            for witness in [
                case.truth.witness and case.truth.witness.model_copy(update={"sql": SLOW})
            ]
        )
        found[name] = replace(group, cases=cases)
    return found


def test_cases_that_nothing_tells_from_their_rivals_are_refused(ready, target, tiny_ids):
    build(confusable(ready), target)
    notes = {path.stem: path.read_text() for path in (target.labels / "refused").iterdir()}
    gone = {role for role in tiny_ids if tiny_ids[role] in notes}
    assert {*info(target).cases} == {tiny_ids[role] for role in tiny_ids if role not in gone}
    # All of one of the two causes go, and none of the other.
    causes = [{role for role in tiny_ids if role.startswith(c)} for c in ("loader", "contention")]
    assert gone in causes
    assert all("true on" in note for note in notes.values())
    before = {path: path.stat().st_mtime_ns for path in target.cases.rglob("*")}
    build(confusable(ready), target)
    assert {path: path.stat().st_mtime_ns for path in target.cases.rglob("*")} == before


def test_stopped_while_it_refuses_it_refuses_the_same_again(ready, target, tmp_path, monkeypatch):
    whole = Places(tmp_path / "whole" / "small", tmp_path / "whole-labels" / "small")
    build(confusable(ready), whole)
    refuse, count = finish._refuse, iter(range(99))

    def stopped(*arguments: object) -> None:
        if next(count) == 1:
            raise KeyboardInterrupt
        refuse(*arguments)

    monkeypatch.setattr(finish, "_refuse", stopped)
    with pytest.raises(KeyboardInterrupt):
        build(confusable(ready), target)
    monkeypatch.undo()
    build(confusable(ready), target)
    assert info(target) == info(whole)


def test_a_case_refused_for_a_rival_comes_back_when_that_is_gone(ready, target, tiny_ids):
    build(confusable(ready), target)
    only = {name: confusable(ready)[name] for name in ("g1",)}
    build(only, target)
    assert {*info(target).cases} == {tiny_ids[role] for role in GROUPS["g1"]}


def test_references_are_stored_once_for_a_group_and_digests_are_of_what_is_there(ready, target):
    group = ready["g0"]
    shared = tuple(replace(case, reference=group.cases[0].reference) for case in group.cases)
    (line,) = build({"g0": replace(group, cases=shared)}, target)
    assert {*line.digests} == {*line.made}
    Suite.open(target.cases).verify()
    traces = [gzip.decompress(path.read_bytes()) for path in target.cases.rglob("*.json.gz")]
    assert len(traces) == 6 and len({*traces}) == 4


def test_two_builders_at_once(ready, target):
    with sole_recorder(target.cases), pytest.raises(ScenarioError, match="two at once"):
        build(ready, target)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_to(ready, target, code):
    error = OSError(code, os.strerror(code), "/a/b")
    with pytest.raises(InputError, match=r"must be a folder that can be written to.*/a/b"):
        build({"g0": replace(ready["g0"], error=error)}, target)


def test_a_file_where_the_folder_should_be(ready, tmp_path):
    (tmp_path / "suites").write_text("")
    with pytest.raises(InputError, match="must be a folder that can be written to"):
        build(ready, Places(tmp_path / "suites" / "small", tmp_path / "labels" / "small"))


def test_a_full_disk(ready, target):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/b")
    with pytest.raises(HarnessError, match="must have room"):
        build({"g0": replace(ready["g0"], error=error)}, target, jobs=2)


def test_a_backend_that_does_not_exist(ready, target, monkeypatch):
    monkeypatch.setenv("EVALHARNESS_SIM_BACKEND", "cuda")
    with pytest.raises(ScenarioError, match=r"EVALHARNESS_SIM_BACKEND: must be one of.*'cuda'"):
        build(ready, target)
