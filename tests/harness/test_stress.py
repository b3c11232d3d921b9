"""Stress end to end, and what lost answers turn to, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.degrade.effects import EFFECTS
from harness.stress import became, grade, turn
from scorers import Metric, Scores

# Counts host samples: fewer than in a full recording, and it gives up, or worse.
SAMPLES = """
def diagnose(case):
    count = len(case.host)
    if count < 2:
        return {"verdict": "faulty", "findings": [{"cause": "slow_link", "confidence": 0.9}]}
    if count < 5:
        return {"verdict": "abstain"}
    return {"verdict": "healthy"}
"""


def test_a_diagnoser_that_gives_up_and_then_misleads(
    tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SAMPLES)
    given = ["stress", "-d", "mine=mine.py:diagnose", "--suite", str(tiny_suite), "--json"]
    done = CliRunner().invoke(cli, [*given, "--degradation", "coarse_telemetry"])
    assert done.exit_code == 0, done.output + repr(done.exception)
    document = json.loads(done.stdout)
    (strained,) = document["degradations"]
    assert (strained["name"], strained["cases"], strained["groups"]) == ("coarse_telemetry", 9, 3)
    as_recorded, twice, five_times, twenty_times = strained["grades"]
    # Five samples become two (one is left over), one, one.
    assert as_recorded["rates"]["abstained"]["value"] == 0
    assert twice["rates"]["abstained"]["value"] == 1
    assert twice["rates"]["misled"]["value"] == 0
    # All that was right are the four healthy cases that were called healthy.
    assert twice["lost"] == {"misled": 0, "abstained": 4, "failed": 0, "other": 0}
    for severe in (five_times, twenty_times):
        assert severe["rates"]["misled"]["value"] == 1
        assert severe["lost"] == {"misled": 4, "abstained": 0, "failed": 0, "other": 0}
        assert severe["change"]["misled_avoided"]["value"] == -1
        assert severe["turns"] == "inconclusive"  # three groups show nothing
    assert json.loads((tmp_path / "results/tiny/mine/stress.json").read_text()) == document


def outcomes(buckets: list[str]) -> Scores:
    """Ten healthy cases, a group each, and what became of them."""
    wrong = [bucket == "false_alarm" for bucket in buckets]
    cases = pd.DataFrame(
        {
            "case_id": [f"c{i}" for i in range(len(buckets))],
            "group": [f"g{i}" for i in range(len(buckets))],
            "verdict": "healthy",
            "bucket": buckets,
            "misled": wrong,
            "acted_found_w1": 0.0,
            "acted_misled_w1": [float(flag) for flag in wrong],
        }
    )
    faults = pd.DataFrame({"group": [], "right_cause_and_locus": []})
    return Scores(cases, faults, pd.DataFrame(), pd.DataFrame(), {})


def test_turns_by_the_interval_of_what_is_lost() -> None:
    before = outcomes(["quiet"] * 10 + ["false_alarm"])
    loud = grade("noise", 0.5, "50 %", before, outcomes(["false_alarm"] * 10 + ["quiet"]))
    assert loud.lost == {"misled": 10, "abstained": 0, "failed": 0, "other": 0}
    assert (loud.turns, loud.misled_share.value) == ("misleading", 1.0)
    mute = grade("noise", 0.5, "50 %", before, outcomes(["abstained"] * 9 + ["failed", "quiet"]))
    assert mute.lost == {"misled": 0, "abstained": 9, "failed": 1, "other": 0}
    assert (mute.turns, mute.misled_share.value) == ("silence", 0.0)
    mixed = ["false_alarm", "abstained"] * 5 + ["false_alarm"]
    assert grade("noise", 0.5, "50 %", before, outcomes(mixed)).turns == "inconclusive"
    assert grade("noise", 0.5, "50 %", before, before).turns == "nothing lost"
    assert set(mute.change) == set(EFFECTS)


def test_lost_cases_are_of_one_kind_each() -> None:
    lost = pd.DataFrame(
        {
            "bucket": ["misled", "abstained", "abstained_blank", "failed", "missed", "partial"],
            "misled": [True, False, False, False, False, False],
        }
    )
    assert dict(became(lost)) == {"misled": 1, "abstained": 2, "failed": 1, "other": 2}


def test_an_interval_that_holds_one_half_says_nothing() -> None:
    assert turn(Metric("misled_share", 0.8, 0.4, 0.9, 9, 9)) == "inconclusive"
    assert turn(Metric("misled_share", 0.2, 0.1, 0.4, 9, 9)) == "silence"


def test_every_degradation_can_be_chosen_and_others_are_refused() -> None:
    done = CliRunner().invoke(cli, ["stress", "-d", "rules", "--degradation", "rust"])
    assert done.exit_code == 2
    assert "'clock_skew'" in done.output
