from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases.case import Case
from harness.diagnosers.third_party.airun import inputs
from harness.diagnosers.third_party.airun.driver import span_of
from harness.diagnosers.third_party.airun.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _said(cause: str) -> Any:
    return {"root_cause": cause, "financial_impact": {"waste_percentage": 36.9}}


def test_its_cause_counts_as_sure_as_it_is_stated() -> None:
    (finding,) = translate(_said("DataLoader starvation")).findings
    assert (finding.cause, finding.confidence) == ("input_pipeline", 0.8)
    assert finding.lost_fraction == pytest.approx(0.369)
    assert translate(_said("Retry amplification & tool cascading stall")).verdict == "abstain"


def test_spans_are_rank_0s_steps(tmp_path: Path) -> None:
    spans = inputs(Case.open(write_starved(tmp_path / "aaaa")))["spans"]
    assert len(spans) == 24
    span = span_of(3, spans[1])
    assert (span["name"], span["duration_ms"]) == ("custom3", 100.0)
    assert span["start_time"] == "2024-01-01T00:00:00.100000+00:00"
