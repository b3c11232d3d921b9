"""Traces that are cut, thinned, shifted and stretched, event by event."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from harness.degrade.clocks import shifted
from harness.degrade.cut_traces import cut
from harness.degrade.lost_events import thinned
from harness.degrade.profiling import stretched
from harness.degrade.trace_text import heads, keep

METADATA = {"ph": "M", "name": "process_name", "ts": 999.0, "pid": 1, "args": {"name": "python"}}
SPAN = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 100.0, "dur": 50.0}


def test_half_of_the_time_is_cut_off(small: SimpleNamespace) -> None:
    # Events from 100 to 140 us: the cut is at 120.
    trace = small.trace(
        METADATA,
        SPAN,
        small.operator(100, 15),
        small.operator(110, 10, name="ends at the cut"),
        small.operator(115, 6, name="open at the cut"),
        {"ph": "s", "cat": "fwdbwd", "id": 1, "ts": 119.5},
        {"ph": "f", "cat": "fwdbwd", "id": 1, "ts": 131.0},
        small.operator(130, 10),
    )
    left = small.events(cut(trace, 0.5))
    assert left[0] == METADATA
    assert left[1] == SPAN | {"dur": 20.0}
    assert [event["ts"] for event in left[2:]] == [100, 110, 119.5]


def test_digits_of_events_that_stay_are_those_of_the_file(small: SimpleNamespace) -> None:
    exact = b'{"ph":"X","cat":"cpu_op","name":"mm","ts":1700000000000000.123,"dur":1.500}'
    late = b'{"ph":"X","cat":"cpu_op","name":"mm","ts":1700000000000900,"dur":1}'
    trace = b'{"schemaVersion":1,"traceEvents":[' + exact + b"," + late + b"]}"
    assert exact in cut(trace, 0.5)
    assert late not in cut(trace, 0.5)


def test_a_trace_that_is_a_list_of_events_stays_one(small: SimpleNamespace) -> None:
    trace = json.dumps([small.operator(0, 1), small.operator(8, 1)]).encode()
    assert json.loads(cut(trace, 0.5)) == [small.operator(0, 1)]


@pytest.mark.parametrize("change", [lambda t: cut(t, 0.5), lambda t: stretched(t, 2.0)])
def test_a_trace_without_times_stays_as_it_is(small: SimpleNamespace, change) -> None:
    trace = small.trace(METADATA)
    assert change(trace) == trace


def test_higher_levels_drop_what_lower_ones_do_and_more(small: SimpleNamespace) -> None:
    trace = small.trace(METADATA, *(small.operator(i, 1) for i in range(2000)))
    left = [{e["ts"] for e in small.events(thinned(trace, p, key=7))} for p in (0.05, 0.2, 0.5)]
    assert left[0] > left[1] > left[2]
    for stay, expected in zip(left, (1900, 1600, 1000), strict=True):
        assert 999.0 in stay  # of the metadata
        assert abs(len(stay) - expected) < 4 * 2000**0.5 / 2
    assert left[1] != {e["ts"] for e in small.events(thinned(trace, 0.2, key=8))}


def test_a_clock_that_is_fast_shifts_all_times(small: SimpleNamespace) -> None:
    trace = small.trace(METADATA, small.operator(10.5, 2), {"ph": "i", "ts": "late"})
    late = small.events(shifted(trace, 1_500))
    assert [event["ts"] for event in late] == [1000.5, 12.0, "late"]
    assert late[1]["dur"] == 2
    assert shifted(trace, 0) is trace


def test_hosts_are_stretched_and_devices_only_delayed(small: SimpleNamespace) -> None:
    kernel = small.operator(30, 4, cat="kernel")
    trace = small.trace(METADATA, small.operator(10, 5), kernel)
    first, second, third = small.events(stretched(trace, 1.5))
    assert first == METADATA
    assert (second["ts"], second["dur"]) == (10, 7.5)
    assert (third["ts"], third["dur"]) == (40, 4)


def test_heads_tell_what_has_a_time(small: SimpleNamespace) -> None:
    found = heads(small.trace(METADATA, SPAN, {"ph": "i", "ts": 3}, {"ph": "i"}))
    assert found.metadata.tolist() == [True, False, False, False]
    assert found.span.tolist() == [False, True, False, False]
    assert found.start_us[1:3].tolist() == [100, 3]
    assert found.end_us[1:3].tolist() == [150, 3]
    assert str(found.start_us[3]) == "nan"


def test_keeping_nothing_leaves_an_empty_trace(small: SimpleNamespace) -> None:
    trace = small.trace(SPAN, METADATA)
    assert json.loads(keep(trace, heads(trace).start_us < 0)) == {
        "schemaVersion": 1,
        "traceEvents": [],
    }
