"""Ablation end to end: a diagnoser that needs one signal is shown to need that one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cases.bundle import Suite
from harness.cli import cli

# Finds the slow loader by its table alone, and takes any case without that table for slow.
LOADER = """
def diagnose(case):
    for name in ("steps", "host", "processes", "loader", "trace_events"):
        if case.has(name) != (case.reference is not None and case.reference.has(name)):
            raise RuntimeError(f"{name} is in one of the runs only")
    if not case.has("loader"):
        blamed = {"cause": "slow_link", "confidence": 0.9}
        return {"verdict": "faulty", "findings": [blamed]}
    if case.loader["cpu_ns"].mean() < 2 * case.reference.loader["cpu_ns"].mean():
        return {"verdict": "healthy"}
    blamed = {"cause": "dataloader_cpu_bound", "locus": {"scope": "job"}, "confidence": 0.9}
    return {"verdict": "faulty", "findings": [blamed]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(LOADER)
    return tmp_path


def ablate(suite: Path, *more: str) -> Result:
    given = ["ablate", "-d", "mine=mine.py:diagnose", "--suite", str(suite), *more]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def test_what_the_loader_buys_who_looks_at_nothing_else(here: Path, tiny_suite: Path) -> None:
    done = ablate(tiny_suite, "--signal", "loader", "--signal", "host", "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "evalharness.ablation/1.0"
    first, second = document["signals"]
    assert (first["signal"], first["cases"]) == ("loader", 8)
    assert (second["signal"], second["cases"]) == ("host", 9)
    # Two of the four faults are slow loaders; the undecidable case never had the table.
    assert value(first["withheld"]["recall"]) == 0.5
    assert value(first["alone"]["recall"]) == 0.5
    assert value(first["causes"]["dataloader_cpu_bound"]) == 1.0
    assert value(first["causes"]["cpu_contention_colocated"]) == 0.0
    # Without it, all eight that had it are misled.
    assert value(first["withheld"]["misled_avoided"]) == pytest.approx(8 / 9)
    assert value(second["withheld"]["recall"]) == 0.0
    # Who sees the host alone blames a link in nine cases of nine.
    assert value(second["alone"]["misled_avoided"]) == -1.0
    assert value(document["with_all"]["recall"]) == 0.5
    assert document["faults"] == {"cpu_contention_colocated": 2, "dataloader_cpu_bound": 2}
    assert first["withheld"]["recall"]["low"] is None  # three groups


def test_only_what_changes_is_asked_once_and_copies_leave_nothing(
    here: Path, tiny_suite: Path, tiny_ids: dict[str, str]
) -> None:
    ablate(tiny_suite, "--signal", "loader")
    kept = here / "results" / "tiny" / "mine"
    lines = (kept / "degraded/without-loader/answers.jsonl").read_text()
    asked = {json.loads(line)["case"] for line in lines.splitlines()}
    assert asked == set(tiny_ids.values()) - {tiny_ids["undecidable_test"]}
    Suite.open(tiny_suite).verify()
    assert sorted(path.name for path in kept.iterdir()) == ["ablation.json", "degraded"]
    folders = ["alone-loader", "as_recorded", "without-loader"]
    assert sorted(path.name for path in (kept / "degraded").iterdir()) == folders
    assert [path.name for path in (here / "results").iterdir()] == ["tiny"]
    again = ablate(tiny_suite, "--signal", "loader")
    assert "without-loader: 8 cases, 8 answered before" in again.stderr


def test_text_and_page(here: Path, tiny_suite: Path) -> None:
    pytest.importorskip("plotly", reason="pip install 'evalharness[plots]'")
    done = ablate(tiny_suite, "--signal", "loader", "--split", "dev", "--html", "page")
    assert "dataloader_cpu_bound  1       1.00    loader +1.00" in done.stdout
    # 0.2 of 0.9 for the fault found rather than a link blamed, 0.7 of 0.9 for the quiet case.
    assert "loader     2      +1.00 [?]  +1.00 [?]       +1.22 [?]" in done.stdout
    assert (here / "page" / "index.html").stat().st_size > 1_000_000
    table = (here / "page" / "ablation.csv").read_text().splitlines()
    assert table[0] == "signal,kind,effect,cause,value,low,high"
    assert "loader,withheld,recall,dataloader_cpu_bound,1.0,," in table


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-d", "mine.py:diagnose", "--signal", "sound"], "--signal: must be among"),
        (["-d", "oracle"], "-d: must look at cases"),
    ],
)
def test_wrong_use_is_told(here: Path, tiny_suite: Path, options: list[str], said: str) -> None:
    from cases.errors import InputError

    done = CliRunner().invoke(cli, ["ablate", *options, "--suite", str(tiny_suite)])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def value(metric: dict[str, Any]) -> float:
    found: float = metric["value"]
    return found
