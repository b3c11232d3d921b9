from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases.case import Case
from harness.diagnosers.third_party.gpuprof.driver import joined, top_kernels
from harness.diagnosers.third_party.gpuprof.inputs import inputs
from harness.diagnosers.third_party.gpuprof.translate import NO_SKEW, translate
from tests.harness.third_party.starved_job import write_starved


def _said(*rules: str, group: tuple[str, ...] = (NO_SKEW,)) -> Any:
    insights = [{"rule": rule, "severity": "high", "title": ""} for rule in rules]
    return {"ranks": {"0": insights}, "group": list(group)}


def test_rules_are_translated_and_notes_left_out() -> None:
    answer = translate(_said("rule_cost_projection", "rule_thermal_throttling"))
    assert [(f.cause, f.confidence) for f in answer.findings] == [("thermal_throttle", 0.8)]
    assert translate(_said("rule_cost_projection", "rule_first_step_outlier")).verdict == "healthy"


def test_a_rule_without_a_name_or_a_slow_rank_is_not_healthy() -> None:
    assert translate(_said("rule_high_step_variance")).verdict == "abstain"
    assert translate(_said(group=("Rank skew: rank 3 median 9 ms",))).verdict == "abstain"
    with pytest.raises(KeyError):
        translate(_said("rule_of_tomorrow"))


def test_rows_have_the_tools_units(tmp_path: Path) -> None:
    given = inputs(Case.open(write_starved(tmp_path / "aaaa")))
    assert given["steps"]["0"][1]["t_start"] == 0.1
    assert given["samples"]["1"][0]["sm_util"] == 0.3
    host = given["host_samples"]["host0"][1]
    assert (host["cpu_percent"], host["disk_read_bps"]) == (25.0, 1e7)  # 4 of 16 cores
    assert top_kernels(given["traces"]["0"])[0]["name"] == "gemm"


def test_workers_join_the_sample_of_their_time() -> None:
    workers = [{"t": 2, "children_cpu_percent": 5, "max_child_cpu_percent": 5, "n_children": 1}]
    first, second = joined([{"t": 1}, {"t": 2}], workers)
    assert first["n_children"] is None
    assert second["n_children"] == 1
    assert list(first) == list(second)
