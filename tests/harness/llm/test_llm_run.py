"""`evalharness run -d llm` from end to end, against a server that plays a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from harness.sandbox.level import why_no_bubblewrap

RESULTS = Path("results/tiny/llm")
Run = Callable[..., Result]


def summary(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = json.loads(result.stdout)[0]
    return found


def test_scripted_expert_is_right_on_every_case(run: Run, server: Any) -> None:
    found = summary(run())
    assert found["outcomes"] == {"ok": 9}
    assert found["metrics"]["recall_cause"]["value"] == 1
    assert found["metrics"]["misled_rate"]["value"] == 0
    assert {request["model"] for _, request in server.requests} == {"scripted"}
    assert {headers["path"] for headers, _ in server.requests} == {"/v1/chat/completions"}


@pytest.mark.skipif(why_no_bubblewrap() is not None, reason="no bubblewrap here")
def test_result_is_sealed_and_the_key_is_nowhere(run: Run, server: Any) -> None:
    found = summary(run())
    assert found["isolation"]["sealed"]
    assert {headers["Authorization"] for headers, _ in server.requests} == {
        "Bearer sk-very-secret-0123456789"
    }
    files = [path for folder in ("results", "cache") for path in Path(folder).rglob("*")]
    written = [path for path in files if path.is_file()]
    assert len(written) > 9
    assert not [path for path in written if b"very-secret" in path.read_bytes()]


def test_second_run_costs_nothing(run: Run, server: Any, monkeypatch: Any) -> None:
    first = summary(run("--jobs", "2"))
    asked = len(server.requests)
    assert asked == 3 * 8 + 1  # the undecidable case is answered at once
    cost = json.loads((RESULTS / "cost.json").read_text())
    # 60 fresh, 40 cached and 10 completion tokens a reply: (60*2 + 40*1 + 10*8) / 1e6 = 0.00024
    assert cost["cost"] == pytest.approx(asked * 0.00024)
    assert (cost["paid"], cost["cases"]) == (cost["cost"], 9)
    assert first["cost"] == cost
    again = summary(run("--out", "elsewhere"))
    assert len(server.requests) == asked
    assert again["metrics"] == first["metrics"]
    cost = json.loads(Path("elsewhere/tiny/llm/cost.json").read_text())
    assert (cost["paid"], cost["cost"]) == (0, pytest.approx(asked * 0.00024))
    transcripts = [json.loads(p.read_text()) for p in Path("elsewhere").rglob("transcripts/*")]
    assert {transcript["paid"] for transcript in transcripts} == {0}
    assert {len(transcript["exchanges"]) for transcript in transcripts} == {1, 3}


def test_repeats_ask_again(run: Run, server: Any) -> None:
    summary(run("--repeats", "2"))
    assert len(server.requests) == 2 * 25
    summary(run("--repeats", "2", "--out", "elsewhere"))
    assert len(server.requests) == 2 * 25


def test_another_model_makes_old_answers_void(
    run: Run, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary(run())
    monkeypatch.setenv("EVALHARNESS_LLM_MODEL", "another")
    summary(run())
    assert len(server.requests) == 2 * 25
    assert json.loads((RESULTS / "run.json").read_text())["model"]["model"] == "another"


def test_nothing_is_sent_without_an_address(
    run: Run, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALHARNESS_LLM_BASE_URL")
    result = run()
    assert "EVALHARNESS_LLM_BASE_URL: must be set" in str(result.exception)
    assert not server.requests
