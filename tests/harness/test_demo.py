"""The whole demo: quick, without torch, and its second story is what tools and numbers say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.bundle import Suite, find_suite
from harness import demo, two_tools
from harness.judge import load_labels
from harness.walks import growth

LIMIT_S = 300.0
PROGRAM = """
import sys
from harness.demo import demo
demo()
print([name for name in ("torch", "triton") if name in sys.modules])
"""


@dataclass(frozen=True)
class Shown:
    """What the demo printed in an empty folder with an empty cache.

    Attributes:
        parts: Its parts 1 to 4, and before them what comes before the first.
        folder: Where it ran.
        simulated: The suite that it built.
    """

    parts: list[str]
    folder: Path
    simulated: Path


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    places = {
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | places,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < LIMIT_S
    assert done.stdout.endswith("\n[]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", places["XDG_CACHE_HOME"])
        simulated = find_suite(demo.SIMULATED)
    return Shown(re.split(r"^[1-4]\. ", done.stdout, flags=re.M), folder, simulated)


def test_both_suites_are_ranked(shown: Shown) -> None:
    _, recorded, simulated, *_ = shown.parts
    for suite, board in ((demo.SUITE, recorded), (demo.SIMULATED, simulated)):
        for name in ("silent", "constant", "random", "shotgun", "rules", "oracle"):
            assert re.search(rf"^(\d+|unsealed).*  {name}  +\d", board, re.MULTILINE), name
            assert (shown.folder / "results" / suite / name / "summary.json").is_file()


def test_two_tools_blame_different_causes_and_one_is_right(shown: Shown) -> None:
    told = shown.parts[4]
    if "This can't be done here" in told:
        pytest.skip("the tools can't be installed here")
    assert re.search(r"^fournex==\S+ \(reads trace\) blames kernel_launch_bound at job", told, re.M)
    assert re.search(r"^datapath-doctor==\S+ \(reads tables\) blames loader_workers", told, re.M)
    assert "They disagree." in told
    assert "\nfournex is scored misattributed (other)\n" in told
    assert "\ndatapath-doctor is scored found_coarse\n" in told
    assert f"The label: {two_tools.CAUSE} (in data_checkpoint / loader_workers) at job" in told


def test_numbers_of_the_simulated_case_bear_the_story_out(shown: Shown) -> None:
    """Without this the demo would tell of numbers that say something else."""
    suite = Suite.open(shown.simulated)
    labels = {label.case_id: label for label in load_labels(suite.folder)}
    grown = {}
    for case_id, label in labels.items():
        case = suite.case(case_id)
        if case.info.workload.name == two_tools.WORKLOAD and case.has("trace_events"):
            cause = label.faults[0].cause if label.faults else None
            grown[cause] = growth(case, two_tools.WORKERS)[0]
            if cause == two_tools.CAUSE:
                traced, others, wait = growth(case, two_tools.IN_TRACE)
    assert traced < 1.1
    assert others > 2
    assert wait > 20
    assert grown.pop(two_tools.CAUSE) > 5
    assert set(grown.values()) == {1.0}  # the query that decides does so on all jobs of this kind


def test_without_an_index_the_case_is_told_without_answers(
    shown: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    two_tools.two_tools(shown.simulated)
    told = capsys.readouterr().out
    assert "can't be done here (the package index can't be reached from here), so" in told
    assert "is scored" not in told
    assert "disagree" not in told
    assert f"The label: {two_tools.CAUSE}" in told


def test_tools_that_agree_or_fail_are_not_said_to_disagree() -> None:
    loader = {"blamed": [{"cause": "loader_workers"}, {"cause": "slow_link"}]}
    silent = {"blamed": [], "answered": None, "outcome": "timeout"}
    assert not two_tools.disagree({"a": loader, "b": loader})
    assert not two_tools.disagree({"a": loader, "b": silent})
    assert two_tools.disagree({"a": loader, "b": {"blamed": loader["blamed"][1:]}})
    assert two_tools.said(silent) == "says nothing: timeout"
