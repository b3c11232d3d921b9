"""A split of a suite as a suite of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cases.bundle import Suite
from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.checks import check_suite
from harness.cli import cli
from harness.judge import labels_folder, load_truths
from injectors.subset import subset


def test_a_subset_holds_the_cases_of_its_split_and_passes_all_checks(
    tiny_suite: Path, tmp_path: Path
) -> None:
    whole, truths = Suite.open(tiny_suite), load_truths(tiny_suite)
    info = subset(tiny_suite, labels_folder(tiny_suite), "dev", tmp_path)
    assert info.name == f"{whole.info.name}_dev" and info.digest != whole.info.digest
    expected = {case_id for case_id, truth in truths.items() if truth.split == "dev"}
    assert info.cases == {case_id: whole.info.cases[case_id] for case_id in expected}
    folder = tmp_path / "suites" / info.name
    assert {*load_truths(folder)} == expected < {*truths}
    problems = [c.failures for c in check_suite(folder, Taxonomy.load()) if c.failures]
    assert problems == []


def test_making_it_again_changes_nothing(tiny_suite: Path, tmp_path: Path) -> None:
    labels = labels_folder(tiny_suite)
    first = subset(tiny_suite, labels, "dev", tmp_path)
    assert subset(tiny_suite, labels, "dev", tmp_path) == first
    assert [path.name for path in (tmp_path / "suites").iterdir()] == [first.name]


def test_a_split_without_cases_is_refused(tiny_suite: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a split of tiny that has cases"):
        subset(tiny_suite, labels_folder(tiny_suite), "nothing", tmp_path)
    assert not (tmp_path / "suites").exists()


def test_command(tiny_suite: Path, tmp_path: Path) -> None:
    line = ["cases", "subset", str(tiny_suite), "--split", "train", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("tiny_train: ")
