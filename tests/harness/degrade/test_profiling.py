"""Profiler overhead: the profiled steps, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from harness.degrade.profiling import profiler_overhead


def test_profiled_steps_take_longer_and_all_behind_their_begin_is_later(
    small: SimpleNamespace,
) -> None:
    collectives = pd.DataFrame(
        {
            "rank": 0,
            "process_group": "world",
            "seq": [0, 1],
            "created_ns": [1500, 3200],
            "started_ns": [None, 3250],
            "completed_ns": [1600, 3400],
        }
    )
    frames = {"steps": small.steps(1, 5), "collectives": collectives}
    job = small.copy(frames, {0: small.trace(small.operator(1, 1))}, overhead=1.1, profiled_steps=2)
    longer = profiler_overhead(job, 1.5, 0)
    steps = longer.run.frame("steps")
    # The last two of five steps, which begin at 3000, take 1500 instead of 1000.
    assert steps["start_ns"].tolist() == [0, 1000, 2000, 3000, 4500]
    assert steps["duration_ns"].tolist() == [1000, 1000, 1000, 1500, 1500]
    assert steps["data_wait_ns"].tolist() == [200, 200, 200, 300, 300]
    found = longer.run.frame("collectives")
    assert found["created_ns"].tolist() == [1500, 3300]
    assert found["completed_ns"].tolist() == [1600, 3600]
    assert found["started_ns"].tolist() == [pd.NA, 3375]
    assert longer.info.provenance.profiler_overhead == 1.65
    assert longer.reference is job.reference


def test_who_does_not_know_the_overhead_does_not_learn_it(small: SimpleNamespace) -> None:
    job = small.copy({"steps": small.steps(1, 5)}, {0: small.trace()}, profiled_steps=2)
    assert profiler_overhead(job, 2.0, 0).info.provenance.profiler_overhead is None


def test_cases_without_a_profile_stay(small: SimpleNamespace) -> None:
    for job in (
        small.copy({"steps": small.steps(1, 5)}, profiled_steps=2),
        small.copy({"steps": small.steps(1, 5)}, {0: small.trace()}),
        small.copy({"steps": small.steps(1, 5)}, {0: small.trace()}, profiled_steps=0),
    ):
        assert profiler_overhead(job, 2.0, 0) is job
