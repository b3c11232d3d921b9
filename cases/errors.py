"""The project's exceptions.

    EvalHarnessError
    |-- InputError            wrong use or unreadable input; exit status 2
    |   |-- RecordError       a JSON or YAML document that breaks its record
    |   |-- BundleError       a case folder or suite that cannot be trusted
    |   |-- TraceError        a trace that cannot be read without guessing
    |   |-- QueryError        a query that is refused or fails
    |   `-- ScenarioError     a scenario that cannot be recorded as written
    `-- HarnessError          the harness itself failed, the run is invalid; exit status 3

Every other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

from pathlib import Path

FOUND_LIMIT = 120


class EvalHarnessError(Exception):
    """Base of every error that this project raises on purpose."""


class InputError(EvalHarnessError):
    """An input that breaks a rule: names the place, the field, the rule and what was found.

    Args:
        must: What must hold, as the end of a sentence ("must be positive").
        where: File, command-line option or other place of the input.
        field: Field within it, dotted (`topology.ranks.0.host`).
        found: What stood there instead; shortened to 120 characters.

    >>> str(InputError("must be positive", where="a.yaml", field="steps", found=-3))
    'a.yaml: steps: must be positive, found -3'
    """

    def __init__(
        self, must: str, *, where: str | Path = "", field: str = "", found: object = None
    ) -> None:
        self.must, self.where, self.field = must, str(where), field
        self.found = None if found is None else shorten(found)
        parts = [part for part in (self.where, field, must) if part]
        text = ": ".join(parts)
        super().__init__(text if self.found is None else f"{text}, found {self.found}")


class RecordError(InputError):
    """A document that breaks its record's rules."""


class BundleError(InputError):
    """A bundle that is incomplete, altered or unsafe to read."""


class TraceError(InputError):
    """A trace that cannot be read without guessing."""


class QueryError(InputError):
    """A query over a case's tables that is refused or fails."""


class ScenarioError(InputError):
    """A scenario that cannot be recorded as it is written, or not on this machine."""


class HarnessError(EvalHarnessError):
    """The harness failed; nothing may be concluded about any diagnoser."""


def shorten(value: object, limit: int = FOUND_LIMIT) -> str:
    """Return `repr(value)` cut to `limit` characters.

    >>> shorten("x" * 10, limit=6)
    "'xx..."
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
