"""Asking the model about one case: its replies through the line, its tools on the case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases.case import Case
from cases.schema import Diagnosis
from harness.child.diagnoser import UnreadableAnswerError
from harness.diagnosers.case_tools.tools import TOOLS, CaseTools, Told, check_diagnosis
from harness.diagnosers.llm.conversation import (
    SUBMIT,
    Ask,
    Budget,
    Conversation,
    NoAnswerError,
    Reply,
)
from harness.diagnosers.llm.line import Line
from harness.diagnosers.llm.prompt import opening


def diagnose(case: Case, settings: Mapping[str, Any]) -> Diagnosis:
    """Ask the model about a case.

    Args:
        case: The case.
        settings: `socket`, the path of the harness's socket, and `budget`.

    Raises:
        NoAnswerError: the budget was spent without any answer.
        UnreadableAnswerError: what was handed in broke the rules to the end.
        ModelError: the model did not reply.
    """
    budget = Budget(**settings["budget"])
    conversation = Conversation(opening(case, budget.steps), budget)
    with Line(settings["socket"], case.info.id) as line, CaseTools(case) as tools:
        try:
            diagnosis = _hold(conversation, line, tools)
        except NoAnswerError as error:
            line.end(f"no answer: {error}")
            if error.refused:
                raise UnreadableAnswerError(str(error)) from error
            raise
        line.end("answered")
        return diagnosis


def _hold(conversation: Conversation, line: Line, tools: CaseTools) -> Diagnosis:
    talk = conversation.run()
    sent: Reply | Told | None = None
    try:
        while True:
            effect = talk.send(sent)
            if isinstance(effect, Ask):
                sent = line.ask(effect.messages, offered(effect.last))
            else:
                sent = _use(tools, effect.tool, effect.arguments)
    except StopIteration as end:
        diagnosis: Diagnosis = end.value
        return diagnosis


def _use(tools: CaseTools, name: str, arguments: Any) -> Told:
    return check_diagnosis(tools, arguments) if name == SUBMIT else tools.call(name, arguments)


def offered(last: bool) -> list[dict[str, Any]]:
    """Return the tools as a request states them; in the last call only the answer's."""
    tools = {} if last else {name: (tool.about, tool.schema) for name, tool in TOOLS.items()}
    tools[SUBMIT] = ("Hand in the diagnosis.", Diagnosis.model_json_schema())
    return [
        {
            "type": "function",
            "function": {"name": name, "description": about, "parameters": schema},
        }
        for name, (about, schema) in tools.items()
    ]
