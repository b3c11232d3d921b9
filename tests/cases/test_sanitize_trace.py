import getpass
import gzip
import json
import re
import socket
import time
from pathlib import Path

import pytest

from cases.errors import TraceError
from cases.kineto import parse_trace
from cases.sanitize_trace import scrub_trace


def x(name, ts, pid=4321, tid=4321, **rest):
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": 1,
    } | rest


def scrubbed(*events, start_ns=0, **header):
    raw = json.dumps({**header, "traceEvents": list(events)}).encode()
    return json.loads(gzip.decompress(scrub_trace(raw, start_ns, hosts=["node7"], users=["ann"])))


def test_times_count_from_the_start():
    trace = scrubbed(
        x("a", 5157022810059.817), x("b", 5157022810060),
        baseTimeNanoseconds=10**18, start_ns=10**18 + 5157022810059817 - 250,
    )  # fmt: skip
    assert [event["ts"] for event in trace["traceEvents"]] == [0.25, 0.433]
    assert trace["baseTimeNanoseconds"] == 0


def test_names_paths_and_header_fields_go():
    trace = scrubbed(
        x("/home/ann/run/train.py(3): step", 1),
        x("/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py(9): _call", 2),
        x("on node7", 3, args={"Concrete Inputs": ["/tmp/ann/x.pt", "[2, 3]"], "Ev Idx": 4}),
        traceName="/tmp/t.json", host_name="node7", schemaVersion=1, INFO=["pid 4321 on node7"],
    )  # fmt: skip
    assert {*trace} == {"schemaVersion", "baseTimeNanoseconds", "traceEvents"}
    names = [event["name"] for event in trace["traceEvents"]]
    assert names == ["train.py(3): step", "torch/nn/modules/module.py(9): _call", "on host0"]
    assert trace["traceEvents"][2]["args"] == {"Concrete Inputs": ["x.pt", "[2, 3]"]}


def test_ids_become_small_and_still_match():
    kernel = x("gemm", 5, pid=1, tid=7, args={"device": 1, "stream": 7})
    trace = scrubbed(
        {"ph": "M", "name": "process_sort_index", "pid": 4321, "tid": 0, "ts": 0,
         "args": {"sort_index": 4321}},
        {"ph": "M", "name": "thread_name", "pid": 4321, "tid": 4400, "ts": 0,
         "args": {"name": "thread 4400 (python)"}},
        x("main", 1), x("backward", 2, tid=4400), kernel, x("track", 3, pid="Spans", tid="PyTorch"),
        {"ph": "s", "id": 77, "cat": "fwdbwd", "name": "f", "pid": 4321, "tid": 4321, "ts": 1},
        {"ph": "f", "id": 77, "cat": "fwdbwd", "name": "f", "pid": 4321, "tid": 4400, "ts": 2},
    )  # fmt: skip
    ids = [(event["pid"], event["tid"]) for event in trace["traceEvents"]]
    assert ids == [(2, 0), (2, 3), (2, 2), (2, 3), (1, 7), ("Spans", "PyTorch"), (2, 2), (2, 3)]
    sort_index, thread_name = (event["args"] for event in trace["traceEvents"][:2])
    assert (sort_index, thread_name) == ({"sort_index": 2}, {"name": "thread 3 (python)"})
    assert [event.get("id") for event in trace["traceEvents"][-2:]] == [77, 77]


def test_the_same_trace_gives_the_same_bytes():
    raw = json.dumps({"traceEvents": [x("a", 1)]}).encode()
    assert scrub_trace(raw, 0) == scrub_trace(gzip.compress(raw), 0)


@pytest.mark.parametrize("raw", [b"[]", b"{}", b'{"traceEvents": [null]}', b'{"traceEvents": ['])
def test_what_is_no_trace_is_refused(raw):
    with pytest.raises(TraceError):
        scrub_trace(raw, 0)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A genuine trace with stacks, and the Unix time at which its marked range began."""
    torch = pytest.importorskip("torch")
    profiler = torch.profiler
    options = {"record_shapes": True, "with_stack": True, "profile_memory": True}
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options) as profile:
        weights = torch.ones(8, 8)
        begin_ns = time.time_ns()
        with profiler.record_function("marked range"):
            (weights @ weights).sum().item()
    path = tmp_path_factory.mktemp("profile") / "trace.json"
    profile.export_chrome_trace(str(path))
    return path.read_bytes(), begin_ns


def test_a_genuine_trace_keeps_its_times(profiled):
    raw, begin_ns = profiled
    before, after = parse_trace(raw), parse_trace(scrub_trace(raw, begin_ns - 10**9))
    start_ns = after.events.loc[after.events.name == "marked range", "start_ns"].item()
    assert start_ns == pytest.approx(10**9, abs=5_000_000)
    shift = before.base_time_ns - begin_ns + 10**9
    assert (after.events.start_ns - before.events.start_ns == shift).all()
    assert (after.events.duration_ns == before.events.duration_ns).all()
    assert (after.base_time_ns, after.dropped) == (0, {})


def test_a_genuine_trace_tells_nothing_of_the_machine(profiled):
    text = gzip.decompress(scrub_trace(*profiled)).decode()
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    private = [socket.gethostname(), getpass.getuser(), Path.home().name]
    words = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in private))
    assert not [string for string in strings if words.search(string)]
    assert not [string for string in strings if re.search(r"/root|/tmp|/home|/usr/", string)]
    assert str(Path.home()) not in text
