"""Every snippet of docs/diagnosers.md does what the page says."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.cli import cli
from harness.specs import FUNCTION, GROUP

PAGE = Path(harness.__file__).parents[1] / "docs" / "diagnosers.md"
SNIPPET = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not installed")


def snippets(language: str) -> list[str]:
    return [text for found, text in SNIPPET.findall(PAGE.read_text()) if found == language]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with the page's Python files, each named in its first line."""
    monkeypatch.chdir(tmp_path)
    for text in snippets("python"):
        name = text.splitlines()[0].removeprefix("# ")
        assert name.endswith(".py")
        (tmp_path / name).write_text(text)
    (tmp_path / "weights.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("line", snippets("sh") if PAGE.is_file() else [])
def test_command_runs(written: Path, tiny_suite: Path, line: str) -> None:
    program, *arguments = shlex.split(line.replace("recorded_cpu", str(tiny_suite)))
    assert program == "evalharness"
    result = CliRunner().invoke(cli, [*arguments, "--no-track", "--json"])
    assert result.exit_code == 0, result.output + repr(result.exception)
    (summary,) = json.loads(result.stdout)
    assert set(summary["outcomes"]) <= {"ok", "unsupported"}
    assert ("unsupported" in summary["outcomes"]) == ("picky" in line)


def test_compared_diagnoser_is_right(written: Path, tiny_suite: Path) -> None:
    """The page's second example reads what tells the two causes of the small suite apart."""
    given = ["run", "-d", "compare.py:diagnose", "--suite", str(tiny_suite), "--no-track", "--json"]
    (summary,) = json.loads(CliRunner().invoke(cli, given).stdout)
    assert summary["metrics"]["recall_cause"]["value"] == 1
    assert summary["metrics"]["misled_rate"]["value"] == 0


@pytest.mark.parametrize("text", snippets("toml") if PAGE.is_file() else [])
def test_entry_point_is_well_formed(text: str) -> None:
    for value in tomllib.loads(text)["project"]["entry-points"][GROUP].values():
        assert FUNCTION.fullmatch(value)
