"""Each gate must see what it is there for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from injectors.sim.kineto import gates, write_traces
from tests.injectors.sim.kineto.conftest import TinyRun, unpacked

Events = list[dict[str, Any]]


def first(events: Events, category: str) -> dict[str, Any]:
    return next(event for event in events if event.get("cat") == category)


def lengthen_kernel(events: Events) -> None:
    first(events, "kernel")["dur"] += 60


def same_correlation(events: Events) -> None:
    calls = [event for event in events if event.get("cat") == "cuda_runtime"]
    calls[1]["args"]["correlation"] = calls[0]["args"]["correlation"]


def lose_arrow(events: Events) -> None:
    events.remove(next(event for event in events if event["ph"] == "f"))


def bend_arrow(events: Events) -> None:
    next(event for event in events if event["ph"] == "s")["ts"] += 0.5


def lengthen_operator(events: Events) -> None:
    next(event for event in events if event["name"] == "aten::addmm")["dur"] += 40


@pytest.mark.parametrize(
    ("break_it", "word"),
    [
        (lengthen_kernel, "early"),
        (same_correlation, "is of 2 events"),
        (lose_arrow, "1 begins and 0 ends"),
        (bend_arrow, "no event where it is bound"),
        (lengthen_operator, "around it"),
    ],
)
def test_what_is_broken_is_found(
    tiny_trace: dict[str, Any], break_it: Callable[[Events], None], word: str
) -> None:
    broken = copy.deepcopy(tiny_trace)
    break_it(broken["traceEvents"])
    assert any(word in problem for problem in gates.problems(broken))


def test_a_collective_that_ends_before_its_last_rank_came_is_found(tiny_run: TinyRun) -> None:
    traces = {rank: unpacked(one) for rank, one in write_traces(tiny_run, (0, 1)).items()}
    for event in traces[1]["traceEvents"]:
        if event["name"] == "ncclDevKernel_AllReduce":
            event["ts"] += 200
    assert any("ended before" in problem for problem in gates.apart(traces))
