from __future__ import annotations

from pathlib import Path
from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.fournex import inputs
from harness.diagnosers.third_party.fournex.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _scope(label: str | None, score: float = 0.5, steps: int = 2, *further: str) -> dict[str, Any]:
    return {
        "diagnosis": {
            "primary_bottleneck": label,
            "user_facing_bottleneck": label,
            "confidence": {"score": score},
        },
        "bottlenecks": [{"label": name, "score": 0.2} for name in (label, *further) if name],
        "step_count": steps,
    }


def _rank(run: dict[str, Any], steady: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"run": run, "steady_state": steady or _scope(None, steps=0)}


def test_main_and_further_bottlenecks() -> None:
    answer = translate({"0": _rank(_scope("input_bound", 0.9, 2, "memory_pressure"))})
    said = [(finding.cause, finding.confidence) for finding in answer.findings]
    assert said == [("input_pipeline", 0.9), ("device_memory", 0.2)]


def test_the_steady_state_counts_where_there_is_one() -> None:
    answer = translate({"0": _rank(_scope("input_bound"), _scope("copy_bound", steps=1))})
    assert [finding.cause for finding in answer.findings] == ["host_to_device_copy"]


def test_where_it_is_not_sure_it_abstains() -> None:
    for raw in (
        {"0": {"refused": "No trace data found in bundle"}},
        {"0": _rank(_scope("inconclusive"))},
        {"0": _rank(_scope("insufficient_telemetry"))},
        {"0": _rank(_scope("underutilized_gpu"))},
        {"0": _rank(_scope(None, steps=0))},
    ):
        assert translate(raw).verdict == "abstain"
    assert translate({"0": _rank(_scope(None))}).verdict == "healthy"


def test_samples_are_those_of_nvidia_smi(tmp_path: Path) -> None:
    samples = inputs(Case.open(write_starved(tmp_path / "aaaa")))["gpu_samples"]["0"]
    assert samples[0] == [0, 30.0, 20.0, 48 * 1024, 80 * 1024]
    assert {row[0] for row in samples} == {0, 1}
