"""The plugin in a real pytest, in a project that owns folders called `cases` and `harness`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import harness

ROOT = Path(harness.__file__).parents[1]
PLUGIN = ROOT / "harness" / "plugin"
pytestmark = pytest.mark.skipif(not PLUGIN.is_dir(), reason="the plugin is installed elsewhere")
# Finds slow loaders, takes every other slowness for the network, and knows when it can't tell.
MINE = """
def diagnose(case):
    if not case.has("loader"):
        return {"verdict": "abstain", "missing_signals": ["loader", "processes"]}
    if case.loader["cpu_ns"].mean() > 2 * case.reference.loader["cpu_ns"].mean():
        blamed = {"cause": "dataloader_cpu_bound", "locus": {"scope": "job"}, "confidence": 0.8}
        return {"verdict": "faulty", "findings": [blamed]}
    if case.steps["duration_ns"].mean() > 1.1 * case.reference.steps["duration_ns"].mean():
        return {"verdict": "faulty", "findings": [{"cause": "slow_link", "confidence": 0.4}]}
    return {"verdict": "healthy"}
"""
OWN = """
import cases, harness

def test_own():
    assert (cases.MINE, harness.MINE) == (1, 2)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose own packages have our names, and would fail the command."""
    for name, text in (("cases", "MINE = 1"), ("harness", "MINE = 2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "harness" / "cli.py").write_text("raise RuntimeError('the wrong package')")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_own.py").write_text(OWN)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def run(project: Path, *options: str) -> tuple[int, str]:
    """Run pytest there with nothing but our plugin; returns its status and what it said."""
    # Where `CI` is set, pytest's summary repeats every message.
    own = {name: value for name, value in os.environ.items() if name not in {"CI", "BUILD_NUMBER"}}
    # Our own packages must be found by the command, and the project's by its tests.
    environment = own | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(PLUGIN), str(project)]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "evalharness_pytest", "-v", *options],
        capture_output=True,
        text=True,
        cwd=project,
        env=environment,
    )
    return done.returncode, done.stdout + done.stderr


def asked(suite: Path, *more: str, diagnoser: str = "mine.py:diagnose") -> list[str]:
    # A path after a blank would be one of those that pytest looks for its configuration beside.
    return [f"--evalharness-suite={suite}", "--evalharness-diagnoser", diagnoser, *more]


def test_red_and_green_by_case(project: Path, tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    status, said = run(project, *asked(tiny_suite, "--evalharness-split", "all"))
    assert status == 1, said
    assert "2 failed, 8 passed" in said  # its own test is among them
    assert "test_own.py::test_own PASSED" in said
    assert f"tiny::{tiny_ids['loader_dev']}-dataloader_cpu_bound PASSED" in said
    assert f"tiny::{tiny_ids['undecidable_test']}-undecidable PASSED" in said
    wrong = tiny_ids["contention_train"]
    assert f"tiny::{wrong}-cpu_contention_colocated FAILED" in said
    told = said.partition("FAILURES")[2].partition(f"{wrong} (train): misled\n")[2]
    lines = told.splitlines()
    assert re.fullmatch(
        r"  true:   cpu_contention_colocated at host host0, costing 3\d% of the time", lines[0]
    )
    assert re.fullmatch(
        r"  blamed: slow_link at no place \(confidence 0.40\): false, \w+", lines[1]
    )
    assert "looking at the public test split" in said
    assert "Traceback" not in said


def test_dev_by_default_and_selection_by_cause_and_id(
    project: Path, tiny_suite: Path, tiny_ids: dict[str, str]
) -> None:
    status, said = run(project, *asked(tiny_suite, "-k", "dataloader_cpu_bound"))
    assert status == 0, said
    assert "1 passed, 2 deselected" in said  # of the dev split's two, and its own test
    assert "looking at" not in said
    answers = next(project.glob(".pytest_cache/d/evalharness/tiny/*/asked/answers.jsonl"))
    assert answers.read_text().count("\n") == 1  # the others were not asked about
    status, said = run(project, *asked(tiny_suite, "-k", tiny_ids["twin_dev"]))
    assert "1 passed, 2 deselected" in said
    assert answers.read_text().count("\n") == 2


def test_a_broken_diagnoser_is_told_once_a_case(project: Path, tiny_suite: Path) -> None:
    (project / "mine.py").write_text("def diagnose(case):\n    raise KeyError('x')\n")
    status, said = run(project, *asked(tiny_suite))
    assert status == 1
    assert said.count("blamed: nothing: error (KeyError: 'x')") == 2
    (project / "mine.py").write_text("import nothing_like_it\n")
    status, said = run(project, *asked(tiny_suite))
    assert status == 1
    assert "must be importable where diagnosers run" in said


def test_unsupported_cases_are_skipped(project: Path, tiny_suite: Path) -> None:
    (project / "mine.py").write_text('NEEDS = {"signals": ["gpu"]}\n' + MINE)
    status, said = run(project, *asked(tiny_suite, "-rs"))
    assert status == 0
    assert "1 passed, 2 skipped" in said
    assert "the case has no gpu" in said


def test_wrong_use_is_told_before_anything_runs(project: Path, tiny_suite: Path) -> None:
    status, said = run(project, "--evalharness-suite", str(tiny_suite))
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "must be given together" in said
    status, said = run(project, *asked(Path("nowhere")))
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "must be the folder of a suite or one of its names" in said


def test_without_options_nothing_changes(project: Path) -> None:
    status, said = run(project)
    assert status == 0
    assert "1 passed" in said
    assert "evalharness:" not in said


def test_plugin_imports_nothing_of_ours() -> None:
    source = (PLUGIN / "evalharness_pytest.py").read_text()
    imported = set(re.findall(r"^(?:from|import) (\w+)", source, re.M))
    assert not imported & {"cases", "harness", "injectors", "scorers"}


def test_entry_point_names_the_module_at_the_top_level() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert stated["project"]["entry-points"]["pytest11"] == {"evalharness": "evalharness_pytest"}
    sources = stated["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]
    assert sources == {"harness/plugin": ""}
    installed = [e for e in metadata.entry_points(group="pytest11") if e.name == "evalharness"]
    if not installed:
        pytest.skip("installed before it had the plugin (pip install -e . again)")
    assert installed[0].load().PACKAGES == ("cases", "harness", "injectors", "scorers")
