"""What case.json says of a recording."""

import pandas as pd
import pytest

from cases.bundle import RunData
from injectors.public import profiler_overhead, withhold


def run(durations, traces):
    steps = pd.DataFrame({"rank": 0, "step": range(len(durations)), "duration_ns": durations})
    return RunData({"steps": steps}, traces)


def test_profiler_overhead_compares_the_last_steps_with_those_before_their_warm_up():
    durations = [900, 10, 12, 11, 300, 22, 24, 23]  # first step; three plain; warm-up; profiled
    assert profiler_overhead(run(durations, {0: b""}), 3) == pytest.approx(23 / 11, abs=1e-3)


def test_nothing_is_said_where_no_trace_is_shipped():
    assert profiler_overhead(run([1] * 10, {}), 3) is None


def test_steps_or_their_mean_are_left_when_all_else_is_withheld():
    whole = run([100, 10, 20, 30], {0: b"{}"})
    phases = whole.tables["steps"].assign(start_ns=0, tokens=7, forward_ns=5)
    tables = {"steps": phases, "logs": pd.DataFrame(), "host": pd.DataFrame()}
    left = withhold(RunData(tables, whole.traces), "all_but_steps")
    assert set(left.tables) == {"steps", "logs"} and not left.traces
    assert list(left.tables["steps"]["forward_ns"]) == [5] * 4
    left = withhold(RunData(tables, whole.traces), "all_but_progress")
    assert list(left.tables["steps"]["duration_ns"]) == [20]
    assert "forward_ns" not in left.tables["steps"]
