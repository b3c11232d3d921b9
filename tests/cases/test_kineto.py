import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.errors import TraceError
from cases.kineto import CATEGORIES, TRACE_EVENTS, parse_trace, read_trace
from cases.kineto.columns import nanoseconds


def x(name="aten::add", ts=0, dur=10, cat="cpu_op", **rest):
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur} | rest


def document(*events, **header):
    return json.dumps({**header, "traceEvents": list(events)}).encode()


def test_a_trace_worked_out_by_hand():
    kernel_args = {
        "External id": 5, "device": 1, "stream": 7, "correlation": 42, "bytes": 64,
        "Collective name": "allreduce", "Process Group Name": "0", "Group size": 2,
        "dtype": "Float", "In msg nelems": 16,
    }  # fmt: skip
    memory = {
        "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 9,
        "ts": 3, "args": {"Bytes": -512, "Device Id": 1, "Device Type": 1},
    }  # fmt: skip
    trace = parse_trace(
        document(
            {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "python"}},
            x("ncclKernel", 4.5, 2.25, "kernel", pid=1, tid=7, args=kernel_args),
            x("ProfilerStep#12", 1, 9, "user_annotation", args={"Sequence number": 3}),
            {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 9, "tid": 9, "ts": 1},
            {"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 7, "ts": 4.5},
            memory,
            schemaVersion=1,
            baseTimeNanoseconds=1_000,
            distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8},
        )
    )
    assert list(trace.events.columns) == list(TRACE_EVENTS.columns)
    assert trace.events.name.tolist() == ["ProfilerStep#12", "[memory]", "ncclKernel"]
    assert trace.events.start_ns.tolist() == [1000, 3000, 4500]
    assert trace.events.duration_ns.tolist() == [9000, 0, 2250]
    step, memory_row, kernel = (trace.events.iloc[i].dropna().to_dict() for i in range(3))
    assert step == {
        "rank": 3, "name": "ProfilerStep#12", "category": "user_annotation", "start_ns": 1000,
        "duration_ns": 9000, "pid": "9", "tid": "9", "step": 12, "sequence_number": 3,
    }  # fmt: skip
    assert (memory_row["bytes"], memory_row["device"]) == (-512, 1)
    assert kernel == {
        "rank": 3, "name": "ncclKernel", "category": "kernel", "start_ns": 4500,
        "duration_ns": 2250, "pid": "1", "tid": "7", "device": 1, "stream": 7,
        "correlation": 42, "external_id": 5, "bytes": 64, "collective": "allreduce",
        "process_group": "0", "group_size": 2, "dtype": "Float", "in_elements": 16,
    }  # fmt: skip
    assert (trace.rank, trace.world_size, trace.base_time_ns) == (3, 8, 1000)
    assert trace.metadata["schemaVersion"] == 1
    assert trace.counts == {"flow_starts": 1, "flow_ends": 1, "metadata": 1}
    assert (trace.dropped, trace.examples) == ({}, {})


def test_equal_starts_keep_the_order_of_the_file():
    events = [x(f"op{i}", ts=i // 5) for i in range(20)]
    assert parse_trace(document(*events)).events.name.tolist() == [e["name"] for e in events]


def test_the_schema_of_2021():
    old = x("gemm", 1, 2, "Kernel", pid=0, tid="stream 7", args={"external id": 8, "device": 0})
    row = parse_trace(document(old)).events.iloc[0]
    assert (row.category, row.tid, row.external_id) == ("kernel", "stream 7", 8)


@pytest.mark.parametrize(("old", "new"), CATEGORIES.items())
def test_older_category_names_become_todays(old, new):
    assert parse_trace(document(x(cat=old))).events.category.tolist() == [new]


def test_an_unknown_category_and_none_stay_apart():
    bare = x(ts=1)
    del bare["cat"]
    categories = parse_trace(document(x(cat="mtia_runtime"), bare)).events.category
    assert categories[0] == "mtia_runtime"
    assert categories.isna().tolist() == [False, True]


@given(st.integers(-(2**52), 2**53))
def test_times_with_three_decimals_are_exact(ns):
    ts = f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
    raw = b'[{"ph":"X","name":"a","dur":0,"ts":%s}]' % ts.encode()
    assert parse_trace(raw).events.start_ns.item() == ns


@given(st.integers(0, 2**62))
def test_absolute_times_are_exact_to_the_ns(ns):
    raw = b'[{"ph":"X","name":"a","dur":0,"ts":%d.%03d}]' % divmod(ns, 1000)
    assert parse_trace(raw).events.start_ns.item() == ns


def test_a_large_trace_of_absolute_times_with_decimals_is_exact_throughout():
    first_ns = 1_712_867_402_305_721_003
    digits = [divmod(first_ns + 7 * i, 1000) for i in range(2000)]
    events = [b'{"ph":"X","name":"a","dur":0,"ts":%d.%03d}' % pair for pair in digits]
    starts = parse_trace(b"[" + b",".join(events) + b"]").events.start_ns
    assert (starts == first_ns + 7 * np.arange(2000)).all()


@given(st.lists(st.floats(-(2**40), 2**40), min_size=1))
def test_rounding_is_to_the_nearest_nanosecond(microseconds):
    exact = nanoseconds(np.array(microseconds)).tolist()
    assert all(abs(ns - us * 1000) <= 0.5001 for ns, us in zip(exact, microseconds, strict=True))


def test_an_empty_trace_has_the_same_columns():
    empty, full = (parse_trace(document(*events)).events for events in ([], [x()]))
    assert len(empty) == 0
    assert [str(t) for t in empty.dtypes] == [str(t) for t in full.dtypes]


def test_events_fit_the_declared_types():
    events = parse_trace(document(x(), x("b", 5))).events
    assert pa.Table.from_pandas(events, preserve_index=False).cast(TRACE_EVENTS.schema)


def test_members_of_a_gzip_file_are_joined_and_bounded(tmp_path: Path):
    raw = document(*[x(ts=i) for i in range(50)])
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(raw[:100]) + gzip.compress(raw[100:]))
    assert len(read_trace(path, max_bytes=len(raw)).events) == 50
    with pytest.raises(TraceError, match="must hold at most"):
        read_trace(path, max_bytes=len(raw) - 1)


def test_the_standard_library_reads_the_same(tmp_path: Path, monkeypatch):
    import zlib

    from cases.kineto import compressed

    packed = gzip.compress(document(x()))
    monkeypatch.setattr(compressed, "INFLATE", zlib.decompressobj)
    assert parse_trace(packed).events.equals(parse_trace(gzip.decompress(packed)).events)
    with pytest.raises(TraceError, match="end early"):
        parse_trace(packed[:-9])


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(TraceError, match=r"gone\.json: must be readable"):
        read_trace(tmp_path / "gone.json")


def test_a_long_wait_is_no_enormous_duration():
    events = [x(ts=i) for i in range(20)]
    assert parse_trace(document(*events, x("sleep", 30, 50e6))).dropped == {}
    mark = {"ph": "i", "name": "Record Window End", "ts": 100, "s": "g", "pid": "", "tid": ""}
    dropped = parse_trace(document(*events, mark, x("sleep", 30, 50e6))).dropped
    assert sum(dropped.values()) == 1


def test_drops_name_the_event():
    events = [x(ts=i) for i in range(20)]
    events[7] = x("aten::mul", ts=7, dur=-3)
    trace = parse_trace(document(*events))
    assert trace.dropped == {"negative duration": 1}
    assert trace.examples["negative duration"].startswith("event 7 'aten::mul'")
    assert "aten::mul" not in trace.events.name.tolist()


def test_a_tenth_may_be_dropped_and_no_more():
    def broken(bad):
        return document(*[x(ts=i, dur=-1 if i < bad else 1) for i in range(20)])

    assert parse_trace(broken(2)).dropped == {"negative duration": 2}
    with pytest.raises(TraceError, match="3 of 20 are not"):
        parse_trace(broken(3))
