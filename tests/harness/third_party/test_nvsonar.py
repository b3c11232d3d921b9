from __future__ import annotations

from pathlib import Path
from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.nvsonar import inputs
from harness.diagnosers.third_party.nvsonar.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _said(state: str, patterns: tuple[str, ...] = (), outliers: tuple[str, ...] = ()) -> Any:
    return {
        "state": state,
        "confidence": 0.9,
        "patterns": [{"name": name, "severity": "warning"} for name in patterns],
        "outliers": [{"metric": name, "severity": "critical"} for name in outliers],
    }


def test_a_state_keeps_the_tools_own_confidence() -> None:
    (finding,) = translate({"0": _said("balanced"), "1": _said("thermal_throttled")}).findings
    assert (finding.cause, finding.confidence) == ("thermal_throttle", 0.9)
    assert finding.locus is not None and finding.locus.ranks == (1,)


def test_patterns_and_outliers_count_beside_a_healthy_state() -> None:
    raw = {"0": _said("compute_bound", ("throttle_cycling",), ("gpu_clock",))}
    (finding,) = translate(raw).findings
    assert (finding.cause, finding.confidence) == ("gpu_clocks", 0.8)


def test_what_has_no_name_makes_no_answer_healthy() -> None:
    assert translate({"0": _said("balanced")}).verdict == "healthy"
    assert translate({"0": _said("idle")}).verdict == "abstain"
    assert translate({"0": _said("unknown")}).verdict == "abstain"
    assert translate({"0": _said("balanced", outliers=("temperature",))}).verdict == "abstain"
    assert translate({}).verdict == "abstain"


def test_samples_are_by_host_in_order(tmp_path: Path) -> None:
    hosts = inputs(Case.open(write_starved(tmp_path / "aaaa")))["hosts"]
    assert set(hosts) == {"host0"}
    assert [len(samples) for samples in hosts["host0"].values()] == [24, 24]
    assert hosts["host0"]["0"][0]["gpu_clock"] == 1410
