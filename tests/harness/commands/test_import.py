"""`cases import`, and what can be done with a case that it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.bundle import Suite
from harness.cli import main
from harness.judge import load_truths
from tests.cases.test_importing import trace

LABEL = """
format: evalharness.label/1.0
source: seen in the profiler by its owner
verdict: faulty
faults:
  - cause: kernel_launch_bound
    locus: {scope: job}
    lost_fraction: {value: 0.5, low: 0.4, high: 0.6}
"""
DIAGNOSER = """
def diagnose(case):
    finding = {"cause": "kernel_launch_bound", "confidence": 0.9, "locus": {"scope": "job"}}
    return {"verdict": "faulty", "findings": [finding]}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(str(exit.value.code or 0)), said.out, said.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(DIAGNOSER)
    (tmp_path / "label.yaml").write_text(LABEL)
    trace(tmp_path / "known.json", start_us=1e9)
    trace(tmp_path / "unknown.json.gz", start_us=2e9, rank=0, world=1)
    return tmp_path


def test_a_labelled_case_is_scored(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "cases", "import", "known.json", "--label", "label.yaml", "--out", "mine"
    )
    assert (code, "1 cases" in out) == (0, True)
    suite = here / "mine" / "suites" / "imported"
    (truth,) = load_truths(suite).values()
    assert (truth.verdict, truth.faults[0].cause) == ("faulty", "kernel_launch_bound")
    asked = ("-d", "mine=mine.py:diagnose", "--suite", suite, "--no-track", "--json")
    code, out, _ = run(capsys, "run", *asked)
    assert code == 0
    assert json.loads(out)[0]["buckets"]["faults"]["found"] == 1
    code, out, _ = run(capsys, "cases", "check", "--suite", suite)
    assert (code, "was not measured" in out) == (1, True)


def test_an_unlabelled_case_is_only_asked_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (("known.json", "--label", "label.yaml"), ("unknown.json.gz",)):
        assert run(capsys, "cases", "import", *arguments, "--out", "mine")[0] == 0
    suite = here / "mine" / "suites" / "imported"
    assert len(Suite.open(suite).case_ids) == 2
    Suite.open(suite).verify()
    asked = ("-d", "mine=mine.py:diagnose", "--suite", suite)
    code, out, _ = run(capsys, "ask", *asked)
    assert code == 0
    assert "no label\n  blamed: kernel_launch_bound" in out
    code, _, err = run(capsys, "run", *asked)
    assert (code, "must have a label for every case" in err) == (2, True)


def test_a_wrong_label_leaves_no_case(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "label.yaml").write_text(LABEL.replace("verdict: faulty", "verdict: healthy"))
    code, _, err = run(
        capsys, "cases", "import", "known.json", "--label", "label.yaml", "--out", "mine"
    )
    assert (code, "healthy case must have no fault" in err) == (2, True)
    assert list((here / "mine" / "suites" / "imported").iterdir()) == []
