"""The conversation with a model as a generator that does no input or output of its own.

It yields `Ask`, to be sent back the model's `Reply`, and `Use`, to be sent back what the tool
`Told`. It returns the diagnosis, or raises `NoAnswerError`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.case_tools.tools import Told
from harness.diagnosers.llm.prompt import LAST_CALL, NO_TOOL
from harness.diagnosers.llm.replies import Call, Message, answer_in_words, repeated, tool_calls

SUBMIT = "submit_diagnosis"
MOST_CALLS = 8  # of tools, in one reply


@dataclass(frozen=True)
class Budget:
    """What one case may cost.

    Attributes:
        steps: Calls of the model.
        tokens: Prompt and completion tokens of all calls together.
        answers: Answers that may be handed in until one is accepted.
    """

    steps: int = 20
    tokens: int = 200_000
    answers: int = 3


@dataclass(frozen=True)
class Ask:
    """The model is to reply to `messages`; in the last call it may only hand in its answer."""

    messages: tuple[Message, ...]
    last: bool


@dataclass(frozen=True)
class Reply:
    """The model's message, and the tokens of prompt and completion."""

    message: Message
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Use:
    """A tool is to be used; `arguments` is any JSON value."""

    tool: str
    arguments: Any


class NoAnswerError(Exception):
    """The budget is spent; `refused` says what was wrong with the last answer, if there was one."""

    def __init__(self, reason: str, refused: str) -> None:
        super().__init__(f"{reason}\n{refused}" if refused else reason)
        self.refused = refused


Talk = Generator[Ask | Use, Any, Diagnosis]
Part = Generator[Ask | Use, Any, Diagnosis | None]


class Conversation:
    """One conversation about one case.

    Attributes:
        messages: What was said so far.
        tokens: What it has cost so far.
    """

    def __init__(self, opening: Sequence[Message], budget: Budget) -> None:
        self.messages: list[Message] = [*opening]
        self.tokens = 0
        self._budget, self._prompt_tokens = budget, 0
        self._refused: list[str] = []

    def run(self) -> Talk:
        """Hold it to its end; see the module."""
        for step in range(1, self._budget.steps + 1):
            # A call costs at least what the one before did, so this may be all that is left.
            last = (
                step == self._budget.steps
                or self.tokens + 2 * self._prompt_tokens > self._budget.tokens
            )
            diagnosis = yield from self._step(last)
            if diagnosis:
                return diagnosis
            if len(self._refused) >= self._budget.answers:
                raise self._without_answer(f"{len(self._refused)} answers were refused")
            if last:
                break
        raise self._without_answer(f"no answer within {step} calls and {self.tokens} tokens")

    def _without_answer(self, reason: str) -> NoAnswerError:
        return NoAnswerError(reason, self._refused[-1] if self._refused else "")

    def _step(self, last: bool) -> Part:
        if last:
            self._say("user", LAST_CALL)
        reply: Reply = yield Ask(tuple(self.messages), last)
        self._prompt_tokens = reply.prompt_tokens
        self.tokens += reply.prompt_tokens + reply.completion_tokens
        calls = tool_calls(reply.message, len(self.messages))
        self.messages.append(repeated(reply.message, calls))
        if not calls:
            return (yield from self._words(reply.message.get("content")))
        for number, call in enumerate(calls):
            told: Told = yield from self._told(call, number)
            self._say("tool", told.text, tool_call_id=call.id)
            if told.answer:
                return told.answer
            self._refuse(call.tool, told)
        return None

    def _words(self, content: Any) -> Part:
        """Take an answer that came without a call of the tool, or ask for one."""
        answer = answer_in_words(content)
        if answer is None:
            self._say("user", NO_TOOL)
            return None
        told: Told = yield Use(SUBMIT, answer)
        self._say("user", told.text)
        self._refuse(SUBMIT, told)
        return told.answer

    def _told(self, call: Call, number: int) -> Generator[Use, Any, Told]:
        if number >= MOST_CALLS:
            return Told(f"at most {MOST_CALLS} tools may be used at once", failed=True)
        if call.wrong:
            return Told(call.wrong, failed=True)
        told: Told = yield Use(call.tool, call.arguments)
        return told

    def _refuse(self, tool: str, told: Told) -> None:
        if tool == SUBMIT and not told.answer:
            self._refused.append(told.text)

    def _say(self, role: str, content: str, **fields: str) -> None:
        self.messages.append({"role": role, **fields, "content": content})
