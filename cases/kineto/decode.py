"""From bytes to typed events: one fast pass, and a careful one where an event breaks its type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import msgspec

from cases.errors import TraceError, shorten
from cases.kineto.layout import Apart, Document, Event, Header

BOM = b"\xef\xbb\xbf"
BYTE = re.compile(r"\(byte (\d+)\)")
CONTEXT_BYTES = 30

UNKNOWN_PHASE = "phase not read"
NULL_EVENT = "null event"
MISTYPED = "field missing or mistyped"


@dataclass
class Drops:
    """Events left out: how many per reason, and the first of each by index and name."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, example: str, count: int = 1) -> None:
        """Count `count` events; `example` says which one and what it holds."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        self.examples.setdefault(reason, example)


class _Label(msgspec.Struct):
    name: str = "?"


class _ExactTime(msgspec.Struct):
    ts: Decimal


_DOCUMENT = msgspec.json.Decoder(Document)
_EVENTS = msgspec.json.Decoder(list[Event | None])
_APART = msgspec.json.Decoder(Apart)
_EVENTS_APART = msgspec.json.Decoder(list[msgspec.Raw])
_EVENT = msgspec.json.Decoder(Event | None)
_LABEL = msgspec.json.Decoder(_Label)
_EXACT_TIME = msgspec.json.Decoder(_ExactTime)


def decode(raw: bytes, where: str | Path, drops: Drops) -> tuple[Header, list[Event | None]]:
    """Decode a trace; an event that is null or breaks its type is None and counted in `drops`.

    Raises TraceError with the byte offset where `raw` is no JSON, and with the field where
    the document is no trace.
    """
    try:
        header, events = _decode_all(raw)
    except msgspec.ValidationError:
        return _decode_apart(raw, where, drops)
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_json(error, raw, where) from None
    if type(None) in set(map(type, events)):
        for index in [i for i, event in enumerate(events) if event is None]:
            drops.add(NULL_EVENT, f"event {index}")
    return header, events


def _decode_all(raw: bytes) -> tuple[Header, list[Event | None]]:
    raw = raw.removeprefix(BOM)
    if _is_list(raw):
        return Header(), _EVENTS.decode(raw)
    document = _DOCUMENT.decode(raw)
    return document, document.traceEvents


def _decode_apart(raw: bytes, where: str | Path, drops: Drops) -> tuple[Header, list[Event | None]]:
    header, parts = split_events(raw, where)
    return header, [_decode_event(i, part, drops) for i, part in enumerate(parts)]


def split_events(raw: bytes, where: str | Path) -> tuple[Header, list[msgspec.Raw]]:
    """Split a trace into its header and its undecoded events."""
    raw = raw.removeprefix(BOM)
    try:
        if _is_list(raw):
            return Header(), _EVENTS_APART.decode(raw)
        document = _APART.decode(raw)
        return document, document.traceEvents
    except msgspec.ValidationError as error:
        raise TraceError(f"must be a Kineto trace ({error})", where=where) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_json(error, raw, where) from None


def _is_list(raw: bytes) -> bool:
    return raw[:64].lstrip().startswith(b"[")


def _decode_event(index: int, part: msgspec.Raw, drops: Drops) -> Event | None:
    try:
        event: Event | None = _EVENT.decode(part)
    except msgspec.ValidationError as error:
        phase = "`$.ph`" in str(error) or "`ph`" in str(error)
        drops.add(UNKNOWN_PHASE if phase else MISTYPED, f"{_label(index, part)}: {error}")
        return None
    if event is None:
        drops.add(NULL_EVENT, f"event {index}")
    return event


def _label(index: int, part: msgspec.Raw) -> str:
    try:
        return f"event {index} {shorten(_LABEL.decode(part).name)}"
    except msgspec.DecodeError:
        return f"event {index}"


def exact_ns(raw: bytes, where: str | Path, indices: list[int]) -> list[int]:
    """The `ts` of the events at `indices` in ns, from their digits rather than as floats."""
    _, parts = split_events(raw, where)
    times = (_EXACT_TIME.decode(parts[index]).ts * 1000 for index in indices)
    return [int(time.to_integral_value(ROUND_HALF_EVEN)) for time in times]


def not_json(error: Exception, raw: bytes, where: str | Path) -> TraceError:
    """Say at which byte `raw` stops being JSON, and what stands there."""
    place = BYTE.search(str(error))
    offset = int(place[1]) if place else len(raw)
    reason = str(error).removeprefix("JSON is malformed: ")
    if not place:
        try:
            raw.decode()
        except UnicodeDecodeError as unicode_error:
            offset, reason = unicode_error.start, f"invalid UTF-8, {unicode_error.reason}"
    near = raw[max(offset - CONTEXT_BYTES, 0) : offset + CONTEXT_BYTES]
    reason = BYTE.sub("", reason).strip()
    return TraceError(f"must be JSON ({reason})", where=where, field=f"byte {offset}", found=near)
