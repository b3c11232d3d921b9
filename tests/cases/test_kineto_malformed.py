"""Every malformed kind is made, and must come out as docs/traces.md says."""

import gzip
import json
import re
from pathlib import Path

import pytest

from cases.errors import TraceError
from cases.kineto import read_trace

DOCS = Path(__file__).parents[2] / "docs" / "traces.md"
ROW = re.compile(r"\| (?P<kind>[^|]+) \| (?P<outcome>legal|dropped|error) \| (?P<detail>[^|]+) \|")
DOCUMENTED = {m["kind"]: (m["outcome"], m["detail"]) for m in ROW.finditer(DOCS.read_text())}
COUNT = 40
ABSOLUTE_US = 1_700_000_000_000_000


def op(i, base=0, **rest):
    event = {"ph": "X", "cat": "cpu_op", "name": f"op{i}", "pid": 9, "tid": 9}
    return event | {"ts": base + 10 * i, "dur": 5, "args": {"External id": i}} | rest


def ops(base=0, **changes):
    """COUNT sound operators; `changes` apply to the one at index 20."""
    events = [op(i, base) for i in range(COUNT)]
    events[20] |= changes
    return events


def packed(events, **header):
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": events}).encode()


def without(field):
    events = ops()
    del events[20][field]
    return packed(events)


def spoilt(old, new, raw=None):
    raw = packed(ops()) if raw is None else raw
    assert old in raw
    return raw.replace(old, new, 1)


def first_args(**args):
    return packed(ops(args=args))


SOUND = packed(ops(), distributedInfo={"rank": 0, "world_size": 2})
GZIPPED = gzip.compress(SOUND)
NAME = b'"op20"'
MAKE = {
    "Windows backslash escapes": lambda: spoilt(NAME, rb'"C:\work\op20"'),
    "unescaped quotes in names": lambda: spoilt(NAME, b'"say "op20" twice"'),
    "newlines in names": lambda: spoilt(NAME, b'"op\n20"'),
    "control characters": lambda: spoilt(NAME, b'"op\x0120"'),
    "bad encodings": lambda: spoilt(NAME, b'"op\xe920"'),
    "ts = 0 in a relative trace": lambda: packed(ops(ts=0)),
    "ts = 0 among absolute times": lambda: packed(ops(ABSOLUTE_US, ts=0)),
    "half the ts 0": lambda: packed(
        [op(i, ABSOLUTE_US, **({"ts": 0} if i % 2 else {})) for i in range(COUNT)]
    ),
    "dur = 0": lambda: packed(ops(dur=0)),
    "negative durations": lambda: packed(ops(dur=-5)),
    "no dur": lambda: without("dur"),
    "top-level list": lambda: json.dumps(ops()).encode(),
    "no rank or distributedInfo": lambda: packed(ops()),
    "rank that is no number": lambda: packed(ops(), distributedInfo={"rank": "zero"}),
    "no ProfilerStep": lambda: packed(ops()),
    "overlapping ranges": lambda: packed(ops(dur=15)),
    "ROCm events without correlation": lambda: packed(
        ops(cat="kernel", args={"device": 2, "stream": 0, "kind": "Dispatch Kernel"})
    ),
    "ROCm handles for numbers": lambda: first_args(stream="0x0", bytes="128"),
    "no Record function id": lambda: packed(ops()),
    "unquoted keys": lambda: spoilt(b'"ph"', b"ph"),
    "relative ts that need baseTimeNanoseconds": lambda: packed(
        ops(), baseTimeNanoseconds=1_700_000_000_000_000_000
    ),
    "a missing runtime event": lambda: packed(
        ops(cat="kernel", args={"device": 0, "stream": 7, "correlation": 99})
    ),
    "NaN": lambda: packed(ops(ts=float("nan"))),
    "Infinity": lambda: packed(ops(dur=float("inf"))),
    "number out of range": lambda: spoilt(b'"ts": 200', b'"ts": 1e999'),
    "BOM": lambda: b"\xef\xbb\xbf" + SOUND,
    "string ts": lambda: packed(ops(ts="200")),
    "null events": lambda: packed([*ops(), None]),
    "begin and end events": lambda: packed([*ops(), {"ph": "B", "name": "range", "ts": 1}]),
    "truncated JSON": lambda: SOUND[:-200],
    "truncated gzip": lambda: GZIPPED[:-20],
    "damaged gzip": lambda: GZIPPED[:-8] + bytes(8),
    "plain JSON named .gz": lambda: SOUND,
    "gzip named .json": lambda: GZIPPED,
    "gzip larger than the bound": lambda: gzip.compress(SOUND + b" " * 2**20),
    "an enormous dur": lambda: packed(ops(dur=1.8e13)),
    "stream: -1": lambda: first_args(stream=-1, device=0),
    "mixed ts units": lambda: packed(
        [op(i, ABSOLUTE_US if i % 2 else ABSOLUTE_US // 1000) for i in range(COUNT)]
    ),
    "no traceEvents": lambda: b'{"schemaVersion": 1}',
}

# What the table must hold at the event op20, or of the trace; (column or attribute, value).
LEGAL = {
    "ts = 0 in a relative trace": ("start_ns", 0),
    "dur = 0": ("duration_ns", 0),
    "top-level list": ("rank", None),
    "no rank or distributedInfo": ("rank", None),
    "no ProfilerStep": ("step", None),
    "overlapping ranges": ("duration_ns", 15_000),
    "ROCm events without correlation": ("correlation", None),
    "ROCm handles for numbers": ("bytes", 128),
    "no Record function id": ("external_id", 20),
    "relative ts that need baseTimeNanoseconds": ("start_ns", 200_000),
    "a missing runtime event": ("correlation", 99),
    "BOM": ("rank", 0),
    "plain JSON named .gz": ("rank", 0),
    "gzip named .json": ("rank", 0),
    "stream: -1": ("stream", None),
}


def name_of(kind):
    return "trace.json.gz" if ".gz" in kind else "trace.json"


def test_the_documented_kinds_are_the_ones_made():
    assert list(DOCUMENTED) == list(MAKE)


@pytest.mark.parametrize("kind", MAKE)
def test_outcome_is_the_documented_one(kind, tmp_path):
    outcome, detail = DOCUMENTED[kind]
    path = tmp_path / name_of(kind)
    path.write_bytes(MAKE[kind]())
    if outcome == "error":
        with pytest.raises(TraceError, match=re.escape(detail)) as caught:
            read_trace(path, max_bytes=2**18)
        assert str(path) in str(caught.value)
        return
    trace = read_trace(path, max_bytes=2**18)
    if outcome == "dropped":
        assert trace.dropped == {detail: 1}
        assert re.match(r"event (20|40)", trace.examples[detail])
        assert len(trace.events) == COUNT - ("event 20" in trace.examples[detail])
        return
    assert trace.dropped == {}
    assert len(trace.events) == COUNT
    column, value = LEGAL[kind]
    found = trace.events.loc[trace.events.name == "op20", column]
    assert found.isna().all() if value is None else found.item() == value


def test_base_time_is_kept_beside_the_relative_times(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(MAKE["relative ts that need baseTimeNanoseconds"]())
    assert read_trace(path).base_time_ns == 1_700_000_000_000_000_000


def test_syntax_errors_name_the_byte(tmp_path):
    path = tmp_path / "trace.json"
    for kind in ("bad encodings", "control characters", "NaN"):
        raw = MAKE[kind]()
        path.write_bytes(raw)
        bad = {"bad encodings": b"\xe9", "control characters": b"\x01", "NaN": b"NaN"}[kind]
        with pytest.raises(TraceError, match=rf"byte {raw.index(bad)}:"):
            read_trace(path)
