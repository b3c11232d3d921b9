"""Reading one Kineto trace into a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from cases.errors import TraceError, shorten
from cases.kineto import columns, times
from cases.kineto.columns import Floats, Ints, nullable, text_column
from cases.kineto.compressed import GZIP_MAGIC, gunzip, read_bytes
from cases.kineto.decode import Drops, decode, exact_ns
from cases.kineto.events import CATEGORIES, TRACE_EVENTS
from cases.kineto.layout import (
    COUNTED,
    NO_ARGS,
    NO_INSTANT_ARGS,
    NONE,
    Complete,
    Event,
    Header,
    Instant,
)

MAX_TRACE_BYTES = 2 * 2**30
MAX_DROPPED_FRACTION = 0.1
WINDOW_END = "Record Window End"
NUMBERS = (
    "device",
    "stream",
    "correlation",
    "external_id",
    "bytes",
    "sequence_number",
    "external_id_2021",
)
COLLECTIVE_NUMBERS = ("group_size", "in_elements")
COLLECTIVE_TEXTS = ("collective", "process_group", "dtype")


@dataclass(frozen=True)
class Trace:
    """One rank's trace.

    Attributes:
        events: The `trace_events` table (TRACE_EVENTS), by start; ties in the file's order.
        rank: Rank of the process, None where the trace does not say.
        world_size: Ranks of the job, None where the trace does not say.
        base_time_ns: Unix time that `start_ns` counts from; 0 where the trace does not say
            (older ones count from 1970 anyway).
        metadata: The header's other fields: device properties, versions, distributedInfo.
        counts: How many events of the kinds that are no rows: flow_starts, flow_steps,
            flow_ends, metadata, counters.
        dropped: Reason -> how many events were left out for it. Empty for a sound trace.
        examples: Reason -> index and name of the first such event.
    """

    events: pd.DataFrame
    rank: int | None
    world_size: int | None
    base_time_ns: int
    metadata: dict[str, Any]
    counts: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)


def read_trace(path: Path, max_bytes: int = MAX_TRACE_BYTES) -> Trace:
    """Read the trace at `path`, gzipped or not whatever its name says.

    Raises:
        TraceError: the file cannot be read, is damaged, is no trace, would hold more than
            `max_bytes`, or more than a tenth of its events had to be dropped.
    """
    return _parse(read_bytes(path, max_bytes), path)


def parse_trace(raw: bytes, where: str | Path = "trace") -> Trace:
    """Read a trace from bytes, gzipped or not; `where` names it in errors.

    >>> parse_trace(b'[{"ph": "X", "name": "add", "ts": 1.5, "dur": 2}]').events.start_ns.item()
    1500
    """
    if raw.startswith(GZIP_MAGIC):
        raw = gunzip(raw, where, MAX_TRACE_BYTES)
    return _parse(raw, where)


def _parse(raw: bytes, where: str | Path) -> Trace:
    drops = Drops()
    header, events = decode(raw, where, drops)
    rows = _Rows.of(events)
    counts = {kind: sum(type(e) is struct for e in events) for kind, struct in COUNTED.items()}
    keep = _judge(rows, drops, where)
    start_ns = columns.nanoseconds(rows.start_us)
    inexact = keep & (np.abs(rows.start_us) >= times.FLOAT_EXACT_US) & (rows.start_us % 1 != 0)
    if inexact.any():
        start_ns[inexact] = exact_ns(raw, where, rows.index[inexact].tolist())
    rank = _whole(header, "rank", where)
    return Trace(
        events=_frame(rows, start_ns, keep, rank),
        rank=rank,
        world_size=_whole(header, "world_size", where),
        base_time_ns=header.baseTimeNanoseconds,
        metadata=_metadata(header),
        counts={kind: count for kind, count in counts.items() if count},
        dropped=drops.counts,
        examples=drops.examples,
    )


@dataclass(frozen=True)
class _Rows:
    """Complete events, then instant ones; `index` is each one's place in the file."""

    complete: list[Complete]
    instant: list[Instant]
    index: Ints
    start_us: Floats
    duration_us: Floats

    @classmethod
    def of(cls, events: Sequence[Event | None]) -> _Rows:
        complete = [event for event in events if type(event) is Complete]
        instant = [event for event in events if isinstance(event, Instant)]
        is_complete = np.fromiter((type(e) is Complete for e in events), bool, len(events))
        is_instant = np.fromiter((isinstance(e, Instant) for e in events), bool, len(events))
        index = np.concatenate([np.flatnonzero(is_complete), np.flatnonzero(is_instant)])
        start = np.fromiter(map(attrgetter("ts"), complete + instant), float, len(index))
        duration = np.zeros(len(index))
        duration[: len(complete)] = np.fromiter(
            map(attrgetter("dur"), complete), float, len(complete)
        )
        return cls(complete, instant, index, start, duration)

    def all(self) -> list[Complete | Instant]:
        return [*self.complete, *self.instant]


def _judge(rows: _Rows, drops: Drops, where: str | Path) -> times.Flags:
    """Flag the rows to keep; count the others, and refuse a trace that loses too many."""
    keep = np.ones(len(rows.index), bool)
    marked = any(event.name == WINDOW_END for event in rows.instant)
    for reason, flags in times.impossible(rows.start_us, rows.duration_us, marked):
        if flags.any():
            keep &= ~flags
            drops.add(reason, _example(rows, int(np.argmax(flags))), int(flags.sum()))
    lost = sum(drops.counts.values())
    if lost > MAX_DROPPED_FRACTION * (lost + keep.sum()):
        reason = max(drops.counts, key=drops.counts.__getitem__)
        raise TraceError(
            f"must be readable but for a tenth of its events, but {lost} of"
            f" {lost + keep.sum()} are not, most for: {reason}",
            where=where,
            found=drops.examples[reason],
        )
    return keep


def _example(rows: _Rows, row: int) -> str:
    event = rows.all()[row]
    times_us = f"ts {rows.start_us[row]:.16g}, dur {rows.duration_us[row]:.16g}"
    return f"event {rows.index[row]} {shorten(event.name)}: {times_us}"


def _frame(rows: _Rows, start_ns: Ints, keep: times.Flags, rank: int | None) -> pd.DataFrame:
    both = rows.all()
    names = text_column([event.name for event in both])
    cells: dict[str, Any] = {
        "rank": nullable(np.full(len(both), NONE if rank is None else rank)),
        "name": names,
        "category": text_column(
            [event.cat for event in both], lambda text: CATEGORIES.get(text, text)
        ),
        "start_ns": start_ns,
        "duration_ns": columns.nanoseconds(np.where(keep, rows.duration_us, 0)),
        "pid": text_column([event.pid for event in both]),
        "tid": text_column([event.tid for event in both]),
        "step": nullable(columns.step_numbers(names)),
        **_argument_cells(rows),
    }
    order = np.lexsort((rows.index, start_ns))
    order = order[keep[order]]
    ordered = {name: cells[name].take(order) for name in TRACE_EVENTS.columns}
    return pd.DataFrame(ordered, copy=False)


def _argument_cells(rows: _Rows) -> dict[str, Any]:
    args = [event.args or NO_ARGS for event in rows.complete]
    numbers = columns.whole_numbers(args, NUMBERS)
    old_id = numbers[:, -1]
    numbers[:, 3] = np.where(numbers[:, 3] == NONE, old_id, numbers[:, 3])
    instants = [event.args or NO_INSTANT_ARGS for event in rows.instant]
    memory = columns.whole_numbers(instants, ("device", "bytes"))
    size = len(args) + len(instants)
    cells: dict[str, Any] = {}
    for place, name in enumerate(NUMBERS[:-1]):
        column = np.full(size, NONE)
        column[: len(args)] = numbers[:, place]
        if name in ("device", "bytes"):
            column[len(args) :] = memory[:, int(name == "bytes")]
        if name in ("device", "stream"):
            column[column == -1] = NONE
        cells[name] = nullable(column)
    return cells | _collective_cells(args, size)


def _collective_cells(args: list[Any], size: int) -> dict[str, Any]:
    found = [i for i, arg in enumerate(args) if arg.collective is not None]
    numbers = np.full((size, len(COLLECTIVE_NUMBERS)), NONE)
    rows = [args[i] for i in found]
    numbers[found] = columns.whole_numbers(rows, COLLECTIVE_NUMBERS)
    cells: dict[str, Any] = {
        name: nullable(numbers[:, i]) for i, name in enumerate(COLLECTIVE_NUMBERS)
    }
    for name in COLLECTIVE_TEXTS:
        cells[name] = columns.sparse_text(found, [getattr(row, name) for row in rows], size)
    return cells


def _whole(header: Header, name: str, where: str | Path) -> int | None:
    value = (header.distributedInfo or {}).get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise TraceError(
            "must be a whole number from 0",
            where=where,
            field=f"distributedInfo.{name}",
            found=value,
        )
    return value


def _metadata(header: Header) -> dict[str, Any]:
    fields = {name: getattr(header, name) for name in Header.__struct_fields__}
    return {
        name: value
        for name, value in fields.items()
        if value is not msgspec.UNSET and value is not None and name != "baseTimeNanoseconds"
    }
