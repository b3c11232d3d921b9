"""A trace's JSON text taken apart into events and put together again.

Events that stay are never decoded into numbers and back: their digits are those of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

METADATA, SPAN = "M", "Trace"
EVENTS = "traceEvents"
Event = dict[str, Any]


class Head(msgspec.Struct):
    """What decides whether an event stays; times in microseconds where they are numbers."""

    ph: Any = None
    cat: Any = None
    ts: Any = None
    dur: Any = None


@dataclass(frozen=True)
class Heads:
    """What decides about each event, in the order of the file.

    Attributes:
        metadata: Whether it says something about the trace, which has no time.
        span: Whether it stands for the profiler's whole work.
        start_us: Its start, NaN where it has none.
        end_us: Its end, that is its start where it has no length.
    """

    metadata: npt.NDArray[np.bool_]
    span: npt.NDArray[np.bool_]
    start_us: npt.NDArray[np.float64]
    end_us: npt.NDArray[np.float64]


def heads(content: bytes) -> Heads:
    """Read what decides about each event."""
    found = msgspec.json.decode(_events(content), type=list[Head])
    metadata = np.array([head.ph == METADATA for head in found], dtype=bool)
    start_us = np.array([_number(head.ts) for head in found], dtype=np.float64)
    length_us = np.array([_number(head.dur) for head in found], dtype=np.float64)
    start_us[metadata] = np.nan
    return Heads(
        metadata,
        np.array([head.cat == SPAN for head in found], dtype=bool),
        start_us,
        start_us + np.where(np.isnan(length_us), 0.0, length_us),
    )


def keep(
    content: bytes, kept: npt.NDArray[np.bool_], edit: Callable[[Event], None] | None = None
) -> bytes:
    """Leave out the events that are not kept; `edit`, if given, changes those of SPAN."""
    events = msgspec.json.decode(_events(content), type=list[msgspec.Raw])
    left = [events[i] for i in np.flatnonzero(kept)]
    if edit is not None:
        for i in np.flatnonzero(heads(content).span[kept]):
            event = msgspec.json.decode(left[i], type=Event)
            edit(event)
            left[i] = msgspec.Raw(msgspec.json.encode(event))
    return _replaced(content, msgspec.json.encode(left))


def change(content: bytes, edit: Callable[[Event], None]) -> bytes:
    """Let `edit` change every event in place."""
    events: list[Event] = msgspec.json.decode(_events(content), type=list[Event])
    for event in events:
        edit(event)
    return _replaced(content, msgspec.json.encode(events))


def moved_us(value: Any, offset_us: float, factor: float = 1.0, origin_us: float = 0.0) -> Any:
    """Return origin + (value - origin) * factor + offset, to the ns; what is no number stays.

    >>> moved_us(10.5, 1.0), moved_us(10.0, 0.0, 2.0, 8.0), moved_us("late", 1.0)
    (11.5, 12.0, 'late')
    """
    if not isinstance(value, int | float):
        return value
    return round(origin_us + (value - origin_us) * factor + offset_us, 3)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else np.nan


def _document(content: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the parts of a trace that is an object; None where it is a list of events alone."""
    if content.lstrip()[:1] == b"[":
        return None
    return msgspec.json.decode(content, type=dict[str, msgspec.Raw])


def _events(content: bytes) -> bytes | msgspec.Raw:
    document = _document(content)
    return content if document is None else document[EVENTS]


def _replaced(content: bytes, events: bytes) -> bytes:
    document = _document(content)
    if document is None:
        return events
    return msgspec.json.encode({**document, EVENTS: msgspec.Raw(events)})
