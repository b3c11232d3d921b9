"""From what came back from the sandbox to an answer on record."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from cases.documents import parse_json, record_error
from cases.errors import InputError, RecordError
from cases.schema import CaseInfo, Record, parse_diagnosis
from cases.tables import SIGNALS
from harness.results import Answer, shorten_text
from harness.sandbox.worker import CaseRun
from scorers import Tree, validate


class Needs(Record):
    """What a diagnoser says it cannot do without.

    `signals` must all be present in a case; `kinds`, if any are named, must hold its kind;
    with `gpus` its job must run on some.
    """

    signals: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    gpus: bool = False

    def lacking(self, info: CaseInfo) -> str | None:
        """Say what a case lacks for this diagnoser, None if nothing."""
        absent = [name for name in self.signals if name not in info.signals.present]
        if absent:
            return f"the case has no {', '.join(absent)}"
        if self.kinds and info.kind not in self.kinds:
            return f"the case is of kind {info.kind}, not {' or '.join(self.kinds)}"
        if self.gpus and not any(place.gpu for place in info.topology.ranks):
            return "the job runs on no GPU"
        return None


def read_needs(found: Any) -> Needs:
    """Check what a diagnoser declared.

    Raises:
        RecordError: it is no declaration, or names a signal that does not exist.
    """
    where = "needs of the diagnoser"
    try:
        needs = Needs.model_validate(found or {})
    except ValidationError as error:
        raise record_error(error, where) from None
    for name in needs.signals:
        if name not in SIGNALS:
            raise RecordError(f"must be among {list(SIGNALS)}", where=where, found=name)
    return needs


def unsupported(case: str, key: str, why: str) -> Answer:
    """Return the answer of a diagnoser that declared that it cannot judge such a case."""
    return Answer(case=case, key=key, outcome="unsupported", error=why)


def to_answer(case: str, key: str, run: CaseRun, taxonomy: Tree) -> Answer:
    """Judge the form of what came back: an answer that breaks the records is invalid."""
    fields: dict[str, Any] = {
        "case": case,
        "key": key,
        "output": shorten_text(run.output),
        "seconds": run.seconds,
        "cpu_s": run.cpu_s,
        "peak_memory_bytes": run.peak_memory_bytes,
    }
    if run.outcome != "ok":
        return Answer(outcome=run.outcome, error=shorten_text(run.error), **fields)
    try:
        diagnosis, ignored = parse_diagnosis(parse_json(run.answer, where="answer"))
    except ValidationError as error:
        return Answer(outcome="invalid", error=str(record_error(error, "answer")), **fields)
    except InputError as error:
        return Answer(outcome="invalid", error=shorten_text(str(error)), **fields)
    if wrong := validate(diagnosis, taxonomy):
        return Answer(outcome="invalid", error=wrong, ignored_keys=ignored, **fields)
    return Answer(outcome="ok", diagnosis=diagnosis, ignored_keys=ignored, **fields)
