"""The events that become rows, and the table that they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
from cases.kineto.layout import (
    COUNTED,
    NO_ARGS,
    NO_INSTANT_ARGS,
    NONE,
    Args,
    Complete,
    Instant,
    OldInstant,
)

NUMBERS = (
    "device",
    "stream",
    "correlation",
    "external_id",
    "bytes",
    "sequence_number",
)
COLLECTIVE_NUMBERS = ("group_size", "in_elements")
COLLECTIVE_TEXTS = ("collective", "process_group", "dtype")
WINDOW_END = "Record Window End"


@dataclass
class Rows:
    """The complete and instant events of a trace as lists, one per attribute, in file order.

    Attributes:
        index: An event's place in the file.
        names: Numbers each text of `name` as it is met; `name` holds the numbers. The same
            for categories, pids and tids.
        starts: us.
        durations: us; 0 for instant events.
        numbers: The arguments of NUMBERS.
        collectives: Arguments of the rows `collective_rows`, which carry a collective.
        counts: How many events of other kinds there were.
        marked: Whether the profiler wrote down when it stopped recording.
    """

    index: list[int] = field(default_factory=list)
    names: Codes = field(default_factory=Codes)
    name: list[int] = field(default_factory=list)
    categories: Codes = field(default_factory=Codes)
    category: list[int] = field(default_factory=list)
    pids: Codes = field(default_factory=Codes)
    pid: list[int] = field(default_factory=list)
    tids: Codes = field(default_factory=Codes)
    tid: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    numbers: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NUMBERS})
    collectives: list[Args] = field(default_factory=list)
    collective_rows: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    marked: bool = False

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def start_us(self) -> Floats:
        """Starts, us."""
        return np.array(self.starts, np.float64)

    @cached_property
    def duration_us(self) -> Floats:
        """Durations, us; 0 for instant events."""
        return np.array(self.durations, np.float64)

    def example(self, row: int) -> str:
        """Say which event `row` is and what times it has."""
        name = list(self.names)[self.name[row]]
        times_us = f"ts {self.starts[row]:.16g}, dur {self.durations[row]:.16g}"
        return f"event {self.index[row]} {shorten(name)}: {times_us}"


def gather(events: Sequence[Any]) -> Rows:
    """Read every event once.

    One loop and not a comprehension per attribute: a large trace's events don't fit the
    processor's cache, and fetching them costs more than the appends.
    """
    rows = Rows()
    name, category, pid, tid = rows.names, rows.categories, rows.pids, rows.tids
    lists = [rows.numbers[name] for name in NUMBERS]
    device, stream, correlation, external_id, size, sequence_number = lists
    without = [values for values in lists if values is not device and values is not size]
    kinds: Counter[type] = Counter()
    for place, event in enumerate(events):
        kind = type(event)
        if kind is Complete:
            args = event.args or NO_ARGS
            if args.collective is not None:
                rows.collective_rows.append(len(rows.index))
                rows.collectives.append(args)
            rows.durations.append(event.dur)
            device.append(args.device)
            stream.append(args.stream)
            correlation.append(args.correlation)
            own = args.external_id
            external_id.append(args.external_id_2021 if own == NONE else own)
            size.append(args.bytes)
            sequence_number.append(args.sequence_number)
        elif kind is Instant or kind is OldInstant:
            rows.marked = rows.marked or event.name == WINDOW_END
            rows.durations.append(0.0)
            args = event.args or NO_INSTANT_ARGS
            device.append(args.device)
            size.append(args.bytes)
            for values in without:
                values.append(NONE)
        else:
            kinds[kind] += 1
            continue
        rows.index.append(place)
        rows.starts.append(event.ts)
        rows.name.append(name[event.name])
        rows.category.append(category[event.cat])
        rows.pid.append(pid[event.pid])
        rows.tid.append(tid[event.tid])
    rows.counts = {name: kinds[kind] for name, kind in COUNTED.items() if kinds[kind]}
    return rows


def frame(rows: Rows, start_ns: Ints, keep: Flags, rank: int | None) -> pd.DataFrame:
    """Build `trace_events` from the rows to keep, sorted by start, then place in the file."""
    names = text_column(rows.names, rows.name)
    cells = {
        "rank": nullable(np.full(len(rows), NONE if rank is None else rank)),
        "name": names,
        "category": text_column(rows.categories, rows.category, CATEGORIES),
        "start_ns": start_ns,
        "duration_ns": nanoseconds(np.where(keep, rows.duration_us, 0)),
        "pid": text_column(rows.pids, rows.pid),
        "tid": text_column(rows.tids, rows.tid),
        "step": nullable(step_numbers(names)),
        **_argument_cells(rows),
        **_collective_cells(rows),
    }
    order = np.argsort(start_ns, kind="stable")
    order = order[keep[order]]
    columns = {name: cells[name].take(order) for name in TRACE_EVENTS.columns}
    return pd.DataFrame(columns, copy=False)


def _argument_cells(rows: Rows) -> dict[str, Any]:
    columns = {name: whole_numbers(values) for name, values in rows.numbers.items()}
    for name in ("device", "stream"):
        columns[name][columns[name] == -1] = NONE  # Kineto's "none in particular"
    return {name: nullable(column) for name, column in columns.items()}


def _collective_cells(rows: Rows) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name in COLLECTIVE_NUMBERS:
        column = np.full(len(rows), NONE)
        values = [getattr(args, name) for args in rows.collectives]
        column[rows.collective_rows] = whole_numbers(values)
        cells[name] = nullable(column)
    for name in COLLECTIVE_TEXTS:
        texts = [getattr(args, name) for args in rows.collectives]
        cells[name] = sparse_text(rows.collective_rows, texts, len(rows))
    return cells
