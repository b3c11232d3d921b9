"""The events that become rows, and the table that they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from cases.errors import shorten
from cases.kineto.columns import (
    Codes,
    Flags,
    Floats,
    Ints,
    nanoseconds,
    nullable,
    sparse_text,
    step_numbers,
    text_column,
    whole_numbers,
)
from cases.kineto.events import CATEGORIES, TRACE_EVENTS
from cases.kineto.layout import COUNTED, NO_ARGS, NO_INSTANT_ARGS, NONE, Complete, Event, Instant

COLLECTIVE_NUMBERS = ("group_size", "in_elements")
COLLECTIVE_TEXTS = ("collective", "process_group", "dtype")
WINDOW_END = "Record Window End"


@dataclass(frozen=True)
class Rows:
    """Complete events followed by instant ones.

    Attributes:
        events: The events.
        completes: How many of them are complete ones.
        index: Each one's place in the file.
        start_us: Their starts.
        duration_us: Their durations, 0 for instant events.
    """

    events: list[Any]
    completes: int
    index: Ints
    start_us: Floats
    duration_us: Floats

    @property
    def marked(self) -> bool:
        """Whether the profiler wrote down when it stopped recording."""
        return any(event.name == WINDOW_END for event in self.events[self.completes :])

    def example(self, row: int) -> str:
        """Say which event `row` is and what times it has."""
        times_us = f"ts {self.start_us[row]:.16g}, dur {self.duration_us[row]:.16g}"
        return f"event {self.index[row]} {shorten(self.events[row].name)}: {times_us}"


def select(events: Sequence[Event | None]) -> tuple[Rows, dict[str, int]]:
    """Pick out the complete and instant events; count the others per kind."""
    codes = Codes()
    kinds = np.fromiter(map(codes.__getitem__, map(type, events)), np.int8, len(events))
    numbers = np.bincount(kinds, minlength=len(codes)).tolist()
    counts = {kind: numbers[codes[struct]] for kind, struct in COUNTED.items() if struct in codes}
    instants = [code for struct, code in codes.items() if issubclass(struct, Instant)]
    is_complete, is_instant = kinds == codes.get(Complete, -1), np.isin(kinds, instants)
    complete: list[Any] = list(compress(events, is_complete.tolist()))
    chosen = complete + list(compress(events, is_instant.tolist()))
    index = np.concatenate([np.flatnonzero(is_complete), np.flatnonzero(is_instant)])
    duration = np.zeros(len(chosen))
    duration[: len(complete)] = [event.dur for event in complete]
    start = np.array([event.ts for event in chosen], np.float64)
    return Rows(chosen, len(complete), index, start, duration), counts


# Every column has a comprehension of its own: CPython specialises `row.field` there, which is
# more than twice as fast as operator.attrgetter over a list of names.


def frame(rows: Rows, start_ns: Ints, keep: Flags, rank: int | None) -> pd.DataFrame:
    """Build `trace_events` from the rows to keep, sorted by start, then place in the file."""
    events = rows.events
    names = text_column([event.name for event in events])
    cells = {
        "rank": nullable(np.full(len(events), NONE if rank is None else rank)),
        "name": names,
        "category": text_column([event.cat for event in events], CATEGORIES),
        "start_ns": start_ns,
        "duration_ns": nanoseconds(np.where(keep, rows.duration_us, 0)),
        "pid": text_column([event.pid for event in events]),
        "tid": text_column([event.tid for event in events]),
        "step": nullable(step_numbers(names)),
        **_argument_cells(rows),
    }
    order = np.lexsort((rows.index, start_ns))
    order = order[keep[order]]
    columns = {name: cells[name].take(order) for name in TRACE_EVENTS.columns}
    return pd.DataFrame(columns, copy=False)


def _argument_cells(rows: Rows) -> dict[str, Any]:
    args = [event.args or NO_ARGS for event in rows.events[: rows.completes]]
    memory = [event.args or NO_INSTANT_ARGS for event in rows.events[rows.completes :]]
    nothing = np.full(len(memory), NONE)
    external_id = whole_numbers([arg.external_id for arg in args])
    old_id = whole_numbers([arg.external_id_2021 for arg in args])
    device = whole_numbers([arg.device for arg in args] + [arg.device for arg in memory])
    stream = whole_numbers([arg.stream for arg in args])
    columns = {
        "device": np.where(device == -1, NONE, device),  # -1: none in particular
        "stream": np.where(stream == -1, NONE, stream),
        "correlation": whole_numbers([arg.correlation for arg in args]),
        "external_id": np.where(external_id == NONE, old_id, external_id),
        "bytes": whole_numbers([arg.bytes for arg in args] + [arg.bytes for arg in memory]),
        "sequence_number": whole_numbers([arg.sequence_number for arg in args]),
    }
    size = len(rows.events)
    cells: dict[str, Any] = {
        name: nullable(column if len(column) == size else np.concatenate([column, nothing]))
        for name, column in columns.items()
    }
    return cells | _collective_cells(args, size)


def _collective_cells(args: list[Any], size: int) -> dict[str, Any]:
    names = [arg.collective for arg in args]
    found = [i for i, name in enumerate(names) if name is not None]
    carriers = [args[i] for i in found]
    cells: dict[str, Any] = {}
    for field in COLLECTIVE_NUMBERS:
        column = np.full(size, NONE)
        column[found] = whole_numbers([getattr(arg, field) for arg in carriers])
        cells[field] = nullable(column)
    for field in COLLECTIVE_TEXTS:
        cells[field] = sparse_text(found, [getattr(arg, field) for arg in carriers], size)
    return cells
