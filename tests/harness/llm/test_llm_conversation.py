"""The conversation without any model: what is asked, told, repeated, and when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from cases.schema import Diagnosis
from harness.diagnosers.case_tools.tools import Told
from harness.diagnosers.llm.conversation import (
    Ask,
    Budget,
    Conversation,
    NoAnswerError,
    Reply,
    Use,
)
from harness.diagnosers.llm.replies import answer_in_words, repeated, tool_calls

OPENING = ({"role": "system", "content": "s"}, {"role": "user", "content": "u"})
HEALTHY = Diagnosis(verdict="healthy")


def call(name: str, arguments: Any, identity: str | None = "c") -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def reply(*calls: dict[str, Any], tokens: int = 10, **fields: Any) -> Reply:
    message = {"role": "assistant", "tool_calls": [*calls] or None, **fields}
    return Reply(message, tokens, 0)


def test_messages_of_a_whole_conversation() -> None:
    talk = Conversation(OPENING, Budget()).run()
    assert next(talk) == Ask(OPENING, last=False)
    effect = talk.send(reply(call("run_sql", '{"sql": "SELECT 1"}')))
    assert effect == Use("run_sql", {"sql": "SELECT 1"})
    effect = talk.send(Told("one row"))
    assert isinstance(effect, Ask)
    assert effect.messages[2:] == (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("run_sql", '{"sql": "SELECT 1"}')],
        },
        {"role": "tool", "tool_call_id": "c", "content": "one row"},
    )
    assert talk.send(reply(call("submit_diagnosis", "{}"))) == Use("submit_diagnosis", {})
    with pytest.raises(StopIteration) as end:
        talk.send(Told("fine", answer=HEALTHY))
    assert end.value.value == HEALTHY


def test_last_call_comes_while_tokens_are_left_for_it() -> None:
    """After 40, another call of 40 and its answer would pass 100."""
    conversation = Conversation(OPENING, Budget(tokens=100))
    talk = conversation.run()
    next(talk)
    effect = talk.send(reply(tokens=40, content="hm"))
    assert isinstance(effect, Ask)
    assert effect.last
    assert effect.messages[-1]["content"].startswith("This is the last call")
    with pytest.raises(NoAnswerError, match="no answer within 2 calls and 80 tokens"):
        talk.send(reply(tokens=40, content="hm"))


def test_a_single_call_is_the_last() -> None:
    talk = Conversation(OPENING, Budget(steps=1)).run()
    effect = next(talk)
    assert isinstance(effect, Ask)
    assert effect.last


def test_refusals_are_counted_over_both_ways_of_answering() -> None:
    talk = Conversation(OPENING, Budget(answers=2)).run()
    next(talk)
    assert talk.send(reply(content='{"verdict": "no"}')) == Use(
        "submit_diagnosis", {"verdict": "no"}
    )
    assert isinstance(talk.send(Told("first", failed=True)), Ask)
    talk.send(reply(call("submit_diagnosis", "{}")))
    with pytest.raises(NoAnswerError, match="2 answers were refused\nsecond") as error:
        talk.send(Told("second", failed=True))
    assert error.value.refused == "second"


def test_unreadable_arguments_of_an_answer_are_a_refusal() -> None:
    talk = Conversation(OPENING, Budget(answers=1)).run()
    next(talk)
    with pytest.raises(NoAnswerError, match="arguments must be a JSON object"):
        talk.send(reply(call("submit_diagnosis", "{")))


def test_calls_without_id_get_one_and_objects_are_read_as_they_are() -> None:
    message = {"tool_calls": [call("a", {"x": 1}, None), 5, call("b", "", None)]}
    calls = tool_calls(message, first_id=3)
    assert [(c.id, c.tool, c.arguments) for c in calls] == [
        ("call_3", "a", {"x": 1}),
        ("call_4", "b", {}),
    ]
    said = repeated(message, calls)["tool_calls"]
    assert [c["function"]["arguments"] for c in said] == ['{"x": 1}', "{}"]
    assert [c["id"] for c in said] == ["call_3", "call_4"]


def test_only_what_servers_want_back_is_repeated() -> None:
    message = {"content": "x", "refusal": "no", "reasoning_content": "because", "tool_calls": []}
    assert repeated(message, []) == {
        "role": "assistant",
        "content": "x",
        "reasoning_content": "because",
    }


@pytest.mark.parametrize("content", [None, 5, "", "no", "[1]", '{"a": ', "```json\n{]\n```"])
def test_words_that_are_no_answer(content: Any) -> None:
    assert answer_in_words(content) is None
