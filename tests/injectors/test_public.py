"""What case.json says of a recording."""

import pandas as pd
import pytest

from cases.bundle import RunData
from injectors.public import profiler_overhead


def run(durations, traces):
    steps = pd.DataFrame({"rank": 0, "step": range(len(durations)), "duration_ns": durations})
    return RunData({"steps": steps}, traces)


def test_profiler_overhead_compares_the_last_steps_with_those_before_their_warm_up():
    durations = [900, 10, 12, 11, 300, 22, 24, 23]  # first step; three plain; warm-up; profiled
    assert profiler_overhead(run(durations, {0: b""}), 3) == pytest.approx(23 / 11, abs=1e-3)


def test_nothing_is_said_where_no_trace_is_shipped():
    assert profiler_overhead(run([1] * 10, {}), 3) is None
