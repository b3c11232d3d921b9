from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases.errors import InputError
from harness.diagnosers import DIAGNOSERS
from harness.specs import parse_spec


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALHARNESS_LLM_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("EVALHARNESS_LLM_MODEL", "any")
    return tmp_path


@pytest.mark.parametrize("name", DIAGNOSERS)
def test_bundled_name_is_known_without_import(name: str) -> None:
    sys.modules.pop(DIAGNOSERS[name].module, None)
    spec = parse_spec(name)
    assert (spec.name, spec.task.target["module"]) == (name, DIAGNOSERS[name].module)
    assert DIAGNOSERS[name].module not in sys.modules


def test_file_is_shown_alone(here: Path) -> None:
    (here / "mine.py").write_text("raise SystemExit('imported')")
    spec = parse_spec("mine.py:diagnose")
    assert spec.task.shown == (here / "mine.py",)
    assert spec.task.target["file"] == str(here / "mine.py")
    assert spec.name == "mine.py-diagnose"


def test_file_of_a_package_brings_the_package(here: Path) -> None:
    inner = here / "tool" / "rules"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    (inner / "mine.py").touch()
    spec = parse_spec("tool/rules/mine.py:diagnose")
    assert spec.task.shown == (here / "tool",)
    assert spec.task.target["module"] == "tool.rules.mine"


def test_module_is_found_from_here_without_import(here: Path) -> None:
    (here / "tool_here").mkdir()
    (here / "tool_here" / "__init__.py").write_text("raise SystemExit('imported')")
    spec = parse_spec("mine=tool_here.rules:diagnose")
    assert (spec.name, spec.task.shown) == ("mine", (here / "tool_here",))
    assert spec.task.target["search"] == [str(here)]


def test_command_shows_the_files_that_it_names(here: Path) -> None:
    (here / "adapter.py").touch()
    spec = parse_spec("cmd:sh adapter.py --level 'very high'")
    assert spec.task.argv[1:] == (str(here / "adapter.py"), "--level", "very high")
    assert here / "adapter.py" in spec.task.shown


def test_command_brings_its_virtual_environment(here: Path) -> None:
    for folder in ("venv/bin", "venv/lib", "base/bin", "base/lib"):
        (here / folder).mkdir(parents=True)
    (here / "venv/pyvenv.cfg").write_text(f"home = {here / 'base/bin'}\n")
    program = here / "venv/bin/tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    shown = parse_spec(f"cmd:{program}").task.shown
    assert {here / "venv/lib", here / "base/lib", here / "venv/pyvenv.cfg"} <= set(shown)
    assert here not in shown


def test_digest_follows_the_code_and_what_is_declared(here: Path) -> None:
    (here / "mine.py").write_text("x = 1")
    (here / "weights").write_text("1")
    first = parse_spec("mine.py:diagnose").digest
    with_weights = parse_spec("mine.py:diagnose", [here / "weights"])
    assert with_weights.task.shown == (here / "mine.py", here / "weights")
    (here / "weights").write_text("2")
    others = {with_weights.digest, parse_spec("mine.py:diagnose", [here / "weights"]).digest}
    (here / "mine.py").write_text("x = 2")
    others.add(parse_spec("mine.py:diagnose").digest)
    assert len(others | {first}) == 4


def test_digest_does_not_depend_on_the_place(here: Path) -> None:
    for name in ("a", "b"):
        (here / name).mkdir()
        (here / name / "mine.py").write_text("x = 1")
    assert parse_spec("a/mine.py:f").digest == parse_spec("b/mine.py:f").digest


@pytest.fixture
def installed(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with an entry point, as pip would install it."""
    wheel = here / "site.zip"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("sharp-1.0.dist-info/METADATA", "Name: sharp\nVersion: 1.0\n")
        points = "[evalharness.diagnosers]\nsharp = sharp_tool.main:diagnose\n"
        file.writestr("sharp-1.0.dist-info/entry_points.txt", points)
    (here / "sharp_tool").mkdir()
    (here / "sharp_tool" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(wheel))
    yield


@pytest.mark.usefixtures("installed")
def test_entry_point_is_a_name(here: Path) -> None:
    spec = parse_spec("sharp")
    assert (spec.name, spec.task.target["module"]) == ("sharp", "sharp_tool.main")
    assert spec.task.shown == (here / "sharp_tool",)


@pytest.mark.parametrize("text", ["", "cmd:", "cmd:'", "a b:c", "x.py", "mine.py:"])
def test_nonsense_names_what_there_is(text: str) -> None:
    with pytest.raises(InputError, match=r"-d: must"):
        parse_spec(text)
