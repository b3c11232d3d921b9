from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cases.case import Case
from cases.errors import InputError
from cases.schema import parse_diagnosis
from harness.cli import cli
from harness.diagnosers import DIAGNOSERS
from harness.diagnosers.third_party import TOOLS


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["diagnosers", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list_tells_all_and_what_each_can_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    listed = json.loads(_run("list", "--json"))
    assert [line["name"] for line in listed["bundled"]] == list(DIAGNOSERS)
    assert [line["name"] for line in listed["tools"]] == list(TOOLS)
    assert not any(line["installed"] for line in listed["tools"])
    (idle,) = [line for line in listed["tools"] if line["name"] == "gpu-idle"]
    assert idle["causes"] == ["host_to_device_copy", "input_pipeline", "kernel_launch_bound"]
    assert idle["needs"]["signals"] == ["trace_events"]
    assert all(name in _run("list") for name in (*DIAGNOSERS, *TOOLS))


def test_an_unknown_tool_is_refused_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match="must be one of"):
        _run("install", "gpu-idle", "nothing")
    assert list(tmp_path.iterdir()) == []


def test_new_writes_one_that_answers_and_never_overwrites(
    tmp_path: Path, tiny_suite: Path, tiny_ids: dict[str, str]
) -> None:
    path = tmp_path / "mine" / "diag.py"
    assert f"{path}:diagnose" in _run("new", str(path))
    spec = importlib.util.spec_from_file_location("new_diagnoser", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for case_id in tiny_ids.values():
        parse_diagnosis(module.diagnose(Case.open(tiny_suite / case_id)))
    with pytest.raises(InputError, match="must not exist yet"):
        _run("new", str(path))
    with pytest.raises(InputError, match="must be a Python file"):
        _run("new", str(tmp_path / "mine.txt"))
