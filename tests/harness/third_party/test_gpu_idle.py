from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.schema import JOB
from harness.diagnosers.third_party.gpu_idle.translate import translate
from harness.environments import Environment
from harness.specs import parse_spec


def _said(*causes: str, confidence: float = 0.5) -> dict[str, Any]:
    return {"findings": [{"cause": cause, "confidence": confidence} for cause in causes]}


def test_each_cause_is_translated_by_the_table() -> None:
    answer = translate({"0": _said("dataloader", "smallbatch", "h2d_copy")})
    assert [finding.cause for finding in answer.findings] == [
        "input_pipeline",
        "kernel_launch_bound",
        "host_to_device_copy",
    ]
    assert all(finding.locus == JOB for finding in answer.findings)


def test_silence_is_healthy() -> None:
    assert translate({"0": _said(), "1": _said()}).verdict == "healthy"


def test_what_it_cannot_attribute_it_abstains_from() -> None:
    assert translate({"0": _said("unattributed"), "1": _said()}).verdict == "abstain"


def test_a_trace_without_steps_is_not_judged() -> None:
    refused = {"refused": "no ProfilerStep annotations"}
    assert translate({"0": refused}).verdict == "abstain"
    assert translate({"0": refused, "1": _said()}).verdict == "healthy"


def test_a_finding_of_one_rank_is_placed_there_and_beats_the_unattributed() -> None:
    answer = translate({"0": _said("unattributed"), "1": _said("dataloader", confidence=0.73)})
    (finding,) = answer.findings
    assert finding.locus is not None and finding.locus.ranks == (1,)
    assert (finding.confidence, answer.confidence) == (0.73, 0.73)


def test_an_unknown_cause_is_an_error() -> None:
    with pytest.raises(KeyError):
        translate({"0": _said("cosmic_rays")})


def test_the_tool_itself_sees_what_was_put_there(
    tool: Callable[[str], Environment],
    traced: Callable[..., Path],
    asked: Callable[..., Any],
    span: Callable[..., dict[str, Any]],
) -> None:
    """Three steps of 1 ms: 0.6 ms in the loader and one kernel of 0.3 ms; then a busy device."""
    tool("gpu-idle")

    def step(index: int, loader_us: float, kernel_us: float) -> list[dict[str, Any]]:
        start, loader = 1000.0 * index, "enumerate(DataLoader)#_SingleProcessDataLoaderIter"
        return [
            span(f"ProfilerStep#{index}", "user_annotation", start, 1000.0),
            span(loader, "user_annotation", start, loader_us),
            span("gemm", "kernel", start + loader_us, kernel_us, device=0, stream=7),
        ]

    starved = [event for index in range(3) for event in step(index, 600, 300)]
    busy = [event for index in range(3) for event in step(index, 50, 900)]
    folders = [traced({0: starved}), traced({0: busy}, "bbbb"), traced({0: starved[1:3]}, "cccc")]
    runs = asked(parse_spec("gpu-idle").task, folders)
    assert [run.outcome for run in runs] == ["ok"] * 3, runs
    loader, healthy, no_steps = [json.loads(run.answer) for run in runs]
    assert [(f["cause"], f["confidence"]) for f in loader["findings"]] == [("input_pipeline", 0.6)]
    assert healthy["verdict"] == "healthy"
    assert no_steps["verdict"] == "abstain"
