"""Flip rates: by hand, and of a diagnoser that throws dice."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.repeats import differing, finished_repeats, flip_rate

DICE = """
import os
def diagnose(case):
    if os.urandom(1)[0] < 128:
        return {"verdict": "abstain"}
    return {"verdict": "healthy"}
"""
SAME = 'def diagnose(case):\n    return {"verdict": "healthy"}\n'


def test_pairs_of_askings_that_differ_by_hand() -> None:
    assert [differing(said) for said in ("aa", "ab", "aab", "abc", "aabb")] == pytest.approx(
        [0, 1, 2 / 3, 1, 4 / 6]
    )


def test_rate_is_the_mean_over_cases_with_an_interval_over_groups() -> None:
    cases = pd.DataFrame({"case_id": list("abcdefgh"), "group": list("ABCDEFGH")})
    said = {case: ["x", "x", "x"] for case in "abcdefg"} | {"h": ["x", "y", "x"]}
    found = flip_rate("flip_rate", said, cases)
    assert found.value == pytest.approx(2 / 3 / 8)
    assert 0 <= found.low < found.value < found.high < 0.6


def run(suite: Path, *more: str) -> dict:
    given = ["run", "--suite", str(suite), "--no-track", "--json", *more]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 0, done.output + repr(done.exception)
    (summary,) = json.loads(done.stdout)
    return summary


def test_dice_flip_and_constants_do_not(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dice.py").write_text(DICE)
    Path("same.py").write_text(SAME)
    flipping = run(tiny_suite, "-d", "dice=dice.py:diagnose", "--repeats", "3")
    # Nine cases, three throws each: that none differs has a chance of 4 ** -9.
    assert 0 < flipping["metrics"]["flip_rate"]["value"] <= 1
    assert flipping["repeats"]["askings"] == 3
    assert flipping["repeats"]["flipped"]
    assert all(len(ends) == 3 for ends in flipping["repeats"]["flipped"].values())
    steady = run(tiny_suite, "-d", "same=same.py:diagnose", "--repeats", "2")
    assert steady["metrics"]["flip_rate"]["value"] == 0
    assert steady["metrics"]["answer_flip_rate"]["value"] == 0
    assert steady["repeats"]["flipped"] == {}

    # Judged again, the repetitions count, but not beside answers of other code.
    folder = tmp_path / "results/tiny/dice"
    again = CliRunner().invoke(cli, ["score", str(folder), "--suite", str(tiny_suite), "--json"])
    assert json.loads(again.stdout)[0]["metrics"]["flip_rate"] == flipping["metrics"]["flip_rate"]
    key = json.loads((folder / "run.json").read_text())["key"]
    assert [path.name for path in finished_repeats(folder, key)] == ["2", "3"]
    assert finished_repeats(folder, "another key") == []
