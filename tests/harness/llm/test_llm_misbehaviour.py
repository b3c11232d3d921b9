"""Models that answer badly: what each costs, and what the model is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

LOADER = "SELECT avg(cpu_ns) / (SELECT avg(cpu_ns) FROM reference.loader) FROM loader"
HEALTHY = {"verdict": "healthy"}
Ask = Callable[..., dict[str, Any]]


def blaming(cause: str = "dataloader_cpu_bound", **fields: Any) -> dict[str, Any]:
    return {"verdict": "faulty", "findings": [{"cause": cause, **fields}]}


def cited(value: float, sql: str = LOADER) -> dict[str, Any]:
    return blaming(evidence=[{"sql": sql, "value": value}])


def play(server: Any, *plays: Any) -> None:
    """Play one after the other, the last one from then on."""
    server.play = lambda request, number: plays[min(number, len(plays)) - 1]


def told(server: Any) -> str:
    """What the model was told last."""
    return str(server.requests[-1][1]["messages"][-1]["content"])


def test_arguments_that_are_no_json_are_refused_and_not_repeated(
    ask: Ask, server: Any, script: Any
) -> None:
    play(server, script.calls(("run_sql", '{"sql": "SELECT')), script.submits(HEALTHY))
    answer = ask()
    assert answer["outcome"] == "ok"
    assert "arguments must be a JSON object" in told(server)
    repeated = server.requests[-1][1]["messages"][-2]["tool_calls"][0]
    assert repeated["function"] == {"name": "run_sql", "arguments": "{}"}


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("run_sql", {"sql": "SELEC 1"}, "syntax error"),
        ("run_sql", {"sql": "SELECT nothing FROM steps"}, "Binder Error"),
        ("run_sql", {"sql": "SELECT * FROM read_text('/etc/passwd')"}, "case's tables only"),
        ("run_sql", {"sql": "SELECT random()"}, "must give the same"),
        ("run_sql", {"query": "SELECT 1"}, "run_sql: sql: Field required"),
        ("run_sql", [1], "run_sql"),
        ("taxonomy", {"name": "slow_link_"}, "slow_link"),
        ("shell", {"command": "ls"}, "must be one of ['list_tables'"),
    ],
)
def test_tool_used_badly_says_why(
    ask: Ask, server: Any, script: Any, tool: str, arguments: Any, says: str
) -> None:
    play(server, script.calls((tool, arguments)), script.submits(HEALTHY))
    assert ask()["outcome"] == "ok"
    assert says in told(server)


def test_answer_in_words_counts_and_prose_does_not(ask: Ask, server: Any, script: Any) -> None:
    play(server, script.says("It looks fine."), script.says('```json\n{"verdict": "healthy"}\n```'))
    assert ask()["diagnosis"]["verdict"] == "healthy"
    assert told(server).startswith("Use a tool, or hand in")


def test_claimed_number_must_be_found(ask: Ask, server: Any, script: Any) -> None:
    """The loader of this case takes four times the CPU that it took: 8 ms against 2 ms."""
    play(server, script.submits(cited(1.2)), script.submits(cited(4.0)))
    answer = ask()
    assert answer["diagnosis"]["findings"][0]["evidence"][0]["value"] == 4.0
    assert "findings.0.evidence.0: the query must give the number that is claimed, 1.2" in told(
        server
    )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (blaming("gremlins", evidence=[{"sql": LOADER, "value": 4}]), "found 'gremlins'"),
        (blaming(), "findings.0: must cite evidence"),
        (cited(4, "SELECT rank FROM steps"), "findings.0.evidence.0: failed"),
        (cited(4, "SELECT random()"), "findings.0.evidence.0: refused"),
        ({"verdict": "faulty"}, "findings must be given if and only if"),
        ({"verdict": "maybe"}, "diagnosis: verdict"),
        ([], "diagnosis"),
    ],
)
def test_third_bad_answer_is_the_last(
    ask: Ask, server: Any, script: Any, answer: Any, says: str
) -> None:
    play(server, script.submits(answer))
    found = ask()
    assert (found["outcome"], len(server.requests)) == ("invalid", 3)
    assert "3 answers were refused" in found["error"]
    assert says in found["error"]
    assert found["transcript"]["end"].startswith("no answer: 3 answers were refused")


def test_endless_tool_calls_end_with_the_budget(
    ask: Ask, server: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALHARNESS_LLM_MAX_STEPS", "4")
    play(server, script.calls(("run_sql", {"sql": "SELECT 1"})))
    found = ask()
    assert (found["outcome"], len(server.requests)) == ("error", 4)
    assert "no answer within 4 calls and 440 tokens" in found["error"]
    offered = [[tool["function"]["name"] for tool in body["tools"]] for _, body in server.requests]
    assert len(offered[2]) == 5
    assert offered[3] == ["submit_diagnosis"]
    assert told(server).startswith("This is the last call")


def test_tokens_are_a_budget_too(
    ask: Ask, server: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply takes 110. After two, 220 + 2 * 100 is more than 400: the third is the last."""
    monkeypatch.setenv("EVALHARNESS_LLM_MAX_TOKENS", "400")
    play(server, script.calls(("taxonomy", {})))
    assert "no answer within 3 calls and 330 tokens" in ask()["error"]


def test_more_tools_at_once_than_are_allowed(ask: Ask, server: Any, script: Any) -> None:
    many = [("run_sql", {"sql": f"SELECT {number}"}) for number in range(10)]
    play(server, script.calls(*many), script.submits(HEALTHY))
    assert ask()["outcome"] == "ok"
    answers = [m["content"] for m in server.requests[-1][1]["messages"] if m["role"] == "tool"]
    assert "7" in answers[7]
    assert answers[8:] == ["at most 8 tools may be used at once"] * 2


def test_text_in_the_place_of_tools(ask: Ask, server: Any, script: Any) -> None:
    odd = script.message(tool_calls=["run_sql", {"function": None}], content=5)
    play(server, odd, script.submits(HEALTHY))
    assert ask()["outcome"] == "ok"
    assert "tool: must be one of" in told(server)


def test_slow_model_costs_its_case(ask: Ask, server: Any, script: Any) -> None:
    play(server, replace(script.submits(HEALTHY), wait_s=4))
    found = ask("loader_dev", "--timeout", "1")
    assert found["outcome"] == "timeout"
    assert found["transcript"]["end"] == "not ended"
