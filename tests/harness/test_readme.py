"""README and docs: the first screen works, links lead somewhere, commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.cli import COMMANDS, cli

ROOT = Path(harness.__file__).parents[1]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.is_file(), reason="the documentation is not installed")
PAGES = sorted([README, *(ROOT / "docs").glob("*.md")])


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.M | re.S)
    assert len(found) == 1
    return found[0]


def test_diagnoser_and_policy_of_the_first_screen(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mydiag.py").write_text(block("python"))
    Path("gate.yaml").write_text(block("yaml"))
    suite = ["--suite", str(tiny_suite), "--no-track"]
    done = CliRunner().invoke(cli, ["run", "-d", "mydiag.py:diagnose", "-d", "rules", *suite])
    assert done.exit_code == 0, done.output
    results = Path("results", "tiny")
    options = ["--policy", "gate.yaml", "--baseline", str(results / "rules"), "--allow-unsealed"]
    done = CliRunner().invoke(cli, ["gate", str(results / "mydiag.py-diagnose"), *options])
    assert done.exit_code in (0, 1), done.output
    assert "mydiag.py-diagnose against rules" in done.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    named = re.findall(r"^(?: {4}|- run: |.*`)evalharness ([a-z]+)", page.read_text(), re.M)
    assert set(named) <= set(COMMANDS)


def test_readme_leads_to_every_page() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in README.read_text(), page.name
