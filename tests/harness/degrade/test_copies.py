"""Copies of real case folders: digests, links, and what the description then says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cases.bundle import Suite, read_case_digest
from cases.case import Case
from cases.errors import BundleError
from harness.ablate import alone, without
from harness.degrade.copies import CaseCopy
from harness.degrade.copying import copy_digest, read_copy, write_copy
from harness.degrade.grades import DEGRADATIONS

GRADES = [(name, level) for name, one in DEGRADATIONS.items() for level in one.levels]


@pytest.fixture(scope="module")
def suite(tiny_suite: Path) -> Suite:
    return Suite.open(tiny_suite)


@pytest.fixture(scope="module")
def original(suite: Suite, tiny_ids: dict[str, str]) -> CaseCopy:
    return read_copy(suite, tiny_ids["loader_dev"])


def test_an_original_is_written_as_it_was(suite: Suite, original: CaseCopy, tmp_path: Path) -> None:
    folder = tmp_path / original.info.id
    write_copy(original, folder)
    assert read_case_digest(folder) == copy_digest(original) == suite.info.cases[original.info.id]


def test_an_altered_case_is_refused(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    here, other = (tiny_copy / tiny_ids[role] / "signals" for role in ("loader_dev", "twin_dev"))
    shutil.copyfile(other / "loader.parquet", here / "loader.parquet")
    with pytest.raises(BundleError, match="must have the digest"):
        read_copy(Suite.open(tiny_copy), tiny_ids["loader_dev"])


def test_what_is_untouched_is_linked(original: CaseCopy, tiny_suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / original.info.id
    write_copy(without(original, ["loader"]), folder)
    for name in ("signals/steps.parquet", "traces/rank0.json.gz", "reference/signals/host.parquet"):
        assert (folder / name).samefile(tiny_suite / original.info.id / name)
    assert not list(folder.rglob("loader.parquet"))


def test_links_that_cannot_be_had_become_copies(
    original: CaseCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr("os.link", refuse)
    folder = tmp_path / original.info.id
    write_copy(without(original, ["loader"]), folder)
    assert read_case_digest(folder) == copy_digest(without(original, ["loader"]))


def test_withheld_signals_are_absent_in_case_and_reference(original: CaseCopy) -> None:
    left = without(original, ["loader", "trace_events"])
    assert left.info.signals.present == ("steps", "host", "processes")
    assert left.info.signals.absent == ("loader", "trace_events")
    assert left.run.signals == left.reference.signals == {"steps", "host", "processes"}
    assert without(original, ["gpu"]) is original


def test_one_signal_alone(original: CaseCopy) -> None:
    only = alone(original, "trace_events")
    assert only.info.signals.present == ("trace_events",)
    assert only.answerable
    assert not without(original, original.present).answerable


def test_a_case_without_traces_does_not_tell_what_the_profiler_cost(original: CaseCopy) -> None:
    info = original.info.model_copy(
        update={
            "provenance": original.info.provenance.model_copy(update={"profiler_overhead": 1.2})
        }
    )
    known = CaseCopy(info, original.run, original.reference, original.digests)
    assert without(known, ["loader"]).info.provenance.profiler_overhead == 1.2
    assert without(known, ["trace_events"]).info.provenance.profiler_overhead is None


@pytest.mark.parametrize(("name", "level"), GRADES)
def test_every_grade_gives_a_whole_case_of_the_same_job(
    original: CaseCopy, name: str, level: float, tmp_path: Path
) -> None:
    degradation = DEGRADATIONS[name]
    before = copy_digest(original)
    copy = degradation.change(original, level, 7)
    assert copy_digest(original) == before
    if copy is original:
        assert name in ("clock_skew", "profiler_overhead")  # one host, and no profiled_steps
        return
    folder = tmp_path / original.info.id
    write_copy(copy, folder)
    assert read_case_digest(folder) == copy_digest(copy)
    assert copy_digest(degradation.at(level, 7)(original)) == copy_digest(copy)
    case = Case.open(folder)
    kept = ("id", "title", "question", "topology", "environment", "workload")
    for field in kept:
        assert getattr(case.info, field) == getattr(original.info, field), field
    assert len(case.steps)
    assert all(case.has(name) for name in case.info.signals.present)
    if case.has("trace_events"):
        assert len(case.trace_events) or level > 0.7


@pytest.mark.parametrize("name", ["missing_ranks", "dropped_events", "noise"])
def test_seeds_draw_apart(original: CaseCopy, name: str) -> None:
    change, level = DEGRADATIONS[name].change, DEGRADATIONS[name].levels[1]
    digests = {copy_digest(change(original, level, seed)) for seed in range(6)}
    assert len(digests) >= 2


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_levels_get_worse_and_are_told_apart(name: str) -> None:
    levels = DEGRADATIONS[name].levels
    assert list(levels) == sorted(set(levels))
    assert len({DEGRADATIONS[name].shown(level) for level in levels}) == len(levels)
