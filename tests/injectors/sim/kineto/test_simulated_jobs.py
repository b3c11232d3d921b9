"""Traces of all simulated training jobs pass the gates."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import numpy as np
import pytest

from cases.kineto import parse_trace
from injectors.sim.kineto import gates, write_traces
from injectors.sim.names import TRAINING
from tests.injectors.sim.kineto.conftest import unpacked
from tests.injectors.sim.kineto.jobs import small_run

TRANSFORMER = {"layers": 4}
SMALL: dict[str, dict[str, int]] = {name: TRANSFORMER for name in TRAINING if "former" in name}


@pytest.mark.parametrize("name", TRAINING)
def test_gates(name: str) -> None:
    run = small_run(name, **SMALL.get(name, {}))
    packed = write_traces(run, run.sampled)
    traces = {rank: unpacked(one) for rank, one in packed.items()}
    assert [p for trace in traces.values() for p in gates.problems(trace)] == []
    assert list(gates.apart(traces)) == []
    assert [parse_trace(one).dropped for one in packed.values()] == [{}, {}]


def test_gaps_vary_and_launches_may_seem_late() -> None:
    """Nothing is as even as in a made-up trace."""
    run = small_run(ranks=8, sampled=(0, 1, 2, 3, 5), **TRANSFORMER)
    for packed in write_traces(run, run.sampled).values():
        events = [e for e in unpacked(packed)["traceEvents"] if e.get("cat") == "kernel"]
        compute = sorted((e for e in events if e["tid"] == 7), key=lambda e: float(e["ts"]))
        ends = np.array([e["ts"] + e["dur"] for e in compute])
        gaps = np.array([e["ts"] for e in compute])[1:] - ends[:-1]
        assert len(set(np.round(gaps[gaps < 3], 3))) > 10
        assert all("External id" in e["args"] for e in events)
    starts = [
        {e["args"]["Seq"]: e["ts"] for e in unpacked(one)["traceEvents"]
         if e.get("cat") == "kernel" and "Seq" in e["args"]}
        for one in write_traces(run, (0, 1)).values()
    ]  # fmt: skip
    apart = [abs(starts[0][seq] - starts[1][seq]) for seq in starts[0].keys() & starts[1].keys()]
    assert np.median(apart) > 1


def test_a_rank_reads_the_same_whatever_is_sampled_beside_it() -> None:
    alone = small_run(sampled=(3,), **TRANSFORMER)
    among = small_run(sampled=(0, 3, 7), **TRANSFORMER)
    assert unpacked(write_traces(alone, (3,))[3]) == unpacked(write_traces(among, (0, 3))[3])


def test_stages_show_their_own_work() -> None:
    run = small_run("pipeline_transformer", 4, (0, 3), pipeline=4, layers=8)
    names = [
        Counter(event["name"].split()[0] for event in unpacked(one)["traceEvents"])
        for one in write_traces(run, run.sampled).values()
    ]
    assert names[0]["nccl:send"] > 0
    assert names[0]["aten::embedding"] > 0 == names[1]["aten::embedding"]
    assert sum(names[0].values()) != sum(names[1].values())


def test_the_times_are_those_of_the_run() -> None:
    """Kernels last in the trace what they last in the run, but for ticks of the clock."""
    run = small_run(sampled=(0,), **TRANSFORMER)
    step, times = max(run.kept.items())
    kept = {field.name: getattr(times, field.name) for field in fields(times)}
    lasted_us = (kept["end"] - kept["start"])[:, 0] / 1000
    trace = unpacked(write_traces(run, (0,))[0])
    shown = [e["dur"] for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    kernels = [i for i, op in enumerate(run.program.ops)
               if op.label.kernel and op.label.category == "kernel"]  # fmt: skip
    expected = lasted_us[kernels]
    assert len(shown) == pytest.approx(2 * len(expected), abs=8)
    last = np.sort(shown[len(shown) // 2 :])
    wanted = np.sort(expected)
    assert np.quantile(last, [0.1, 0.5, 0.9]) == pytest.approx(
        np.quantile(wanted, [0.1, 0.5, 0.9]), rel=0.05
    )
    assert step == run.job.steps - 1
