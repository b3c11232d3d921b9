"""Reading what a model replied: the tools that it calls, or an answer in words."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
# What the next request repeats of a reply: servers refuse fields that they do not know, and some
# want their own reasoning back.
KEPT = ("content", "tool_calls", "reasoning_content", "reasoning_details")
FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """One call of a tool; `wrong` says why its arguments cannot be read."""

    id: str
    tool: str
    arguments: Any
    wrong: str = ""


def tool_calls(reply: Message, first_id: int) -> list[Call]:
    """Return the calls of a reply, in order; what is no call at all is left out.

    Args:
        reply: The model's message.
        first_id: Number for calls that come without an id of their own.
    """
    found = reply.get("tool_calls")
    given = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    return [_call(call, f"call_{number}") for number, call in enumerate(given, first_id)]


def _call(call: Message, default_id: str) -> Call:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name, text = str(function.get("name")), function.get("arguments")
    identity = str(call.get("id") or default_id)
    if not isinstance(text, str):  # some servers send the object itself
        return Call(identity, name, text)
    try:
        return Call(identity, name, json.loads(text or "{}"))
    except (ValueError, RecursionError) as error:
        return Call(identity, name, None, f"arguments must be a JSON object ({error})")


def repeated(reply: Message, calls: list[Call]) -> Message:
    """Return a reply as the next request repeats it.

    Arguments that are no JSON are left out: servers read those of earlier messages again, and
    refuse the whole request for them.
    """
    kept = {name: reply[name] for name in KEPT if reply.get(name)}
    kept.pop("tool_calls", None)
    if calls:
        given = [call for call in reply["tool_calls"] if isinstance(call, dict)]
        kept["tool_calls"] = [_repeated(one, call) for one, call in zip(given, calls, strict=True)]
    return {"role": "assistant", "content": None, **kept}


def _repeated(given: Message, call: Call) -> Message:
    arguments = json.dumps({} if call.wrong else call.arguments, ensure_ascii=False)
    return {
        **given,
        "id": call.id,
        "type": "function",
        "function": {"name": call.tool, "arguments": arguments},
    }


def answer_in_words(content: Any) -> Any:
    """Return the JSON object that a text is, or holds in a fence; None if there is none.

    >>> answer_in_words('It is fine: ```json {"verdict": "healthy"} ```')
    {'verdict': 'healthy'}
    """
    if not isinstance(content, str):
        return None
    fenced = FENCED.search(content)
    try:
        value = json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
