"""Reading one Kineto trace into a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from cases.errors import TraceError
from cases.kineto.columns import Flags, Ints, nanoseconds
from cases.kineto.compressed import GZIP_MAGIC, gunzip, read_bytes
from cases.kineto.decode import Drops, decode, exact_ns
from cases.kineto.layout import Header
from cases.kineto.rows import Rows, frame, gather
from cases.kineto.times import FLOAT_EXACT_US, impossible

MAX_TRACE_BYTES = 2 * 2**30
MAX_DROPPED_FRACTION = 0.1
SMALL = 1000


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
    rows = gather(events)
    del events
    keep = _judge(rows, drops, where)
    rank = _whole(header, "rank", where)
    return Trace(
        events=frame(rows, _starts(raw, rows, keep, where), keep, rank),
        rank=rank,
        world_size=_whole(header, "world_size", where),
        base_time_ns=header.baseTimeNanoseconds,
        metadata=_metadata(header),
        counts=rows.counts,
        dropped=drops.counts,
        examples=drops.examples,
    )


def _judge(rows: Rows, drops: Drops, where: str | Path) -> Flags:
    """Flag the rows to keep; count the others, and refuse a trace that loses too many."""
    keep = np.ones(len(rows), bool)
    for reason, flags in impossible(rows.start_us, rows.duration_us, rows.marked):
        if flags.any():
            keep &= ~flags
            drops.add(reason, rows.example(int(np.argmax(flags))), int(flags.sum()))
    lost = sum(drops.counts.values())
    if lost > MAX_DROPPED_FRACTION * (lost + keep.sum()):
        reason = max(drops.counts, key=drops.counts.__getitem__)
        raise TraceError(
            f"must be readable but for a tenth of its events; {lost} of {lost + keep.sum()}"
            f" are not, most for: {reason}",
            where=where,
            found=drops.examples[reason],
        )
    return keep


def _starts(raw: bytes, rows: Rows, keep: Flags, where: str | Path) -> Ints:
    """Starts in ns; where a float is too coarse for its decimals, from the digits in `raw`.

    A float of such a size may hold a whole number by rounding, but not in all of SMALL events
    that are written with decimals.
    """
    start_us = np.where(keep, rows.start_us, 0)
    start_ns = nanoseconds(start_us)
    coarse = np.abs(start_us) >= FLOAT_EXACT_US
    if coarse.any() and (len(rows) < SMALL or (start_us % 1 != 0).any()):
        start_ns[coarse] = exact_ns(raw, where, [rows.index[row] for row in np.flatnonzero(coarse)])
    return start_ns


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
