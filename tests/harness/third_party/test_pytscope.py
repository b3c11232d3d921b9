from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases.case import Case
from harness.diagnosers.third_party.pytscope import inputs
from harness.diagnosers.third_party.pytscope.driver import write_run
from harness.diagnosers.third_party.pytscope.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _said(*findings: tuple[str, str, str]) -> Any:
    names = ("code", "severity", "title")
    return {"findings": [dict(zip(names, finding, strict=True)) for finding in findings]}


def test_codes_are_translated_with_the_worth_of_their_grade() -> None:
    answer = translate(
        _said(
            ("DIST.EXPOSED_COMM", "med", "Communication is not overlapped with compute"),
            ("TIMING.DATALOADER_BOUND", "high", "Input pipeline is a bottleneck"),
        )
    )
    said = [(finding.cause, finding.confidence) for finding in answer.findings]
    assert said == [("input_pipeline", 0.8), ("communication_schedule", 0.5)]


def test_the_budget_names_its_line_in_the_title() -> None:
    data = _said(("EFFICIENCY.RECOVERABLE", "high", "40% of wall time is recoverable (data_stall)"))
    other = _said(("EFFICIENCY.RECOVERABLE", "high", "40% of wall time is recoverable (other)"))
    assert [finding.cause for finding in translate(data).findings] == ["input_pipeline"]
    assert translate(other).verdict == "abstain"


def test_what_has_no_name_makes_no_answer_healthy() -> None:
    assert translate(_said(("DIST.STRAGGLER", "high", "Rank 2"))).verdict == "abstain"
    assert translate(_said()).verdict == "healthy"
    assert translate({"refused": "No steps or trace found"}).verdict == "abstain"
    with pytest.raises(KeyError):
        translate(_said(("NEW.RULE", "high", "?")))


def test_phases_add_up_to_the_step(tmp_path: Path) -> None:
    given = inputs(Case.open(write_starved(tmp_path / "aaaa")))
    first = given["steps"]["1"][0]
    assert first["phases"]["data"] == 0.04
    assert sum(first["phases"].values()) == pytest.approx(0.1)
    assert sorted(given["traces"]) == ["0", "1"]


def test_a_run_of_one_rank_has_no_folders_of_ranks(tmp_path: Path) -> None:
    record = {"step": 0, "phases": {}}
    assert (write_run(tmp_path / "one", {"0": [record]}) / "steps.jsonl").is_file()
    assert (write_run(tmp_path / "two", {"0": [record], "1": [record]}) / "rank1").is_dir()
