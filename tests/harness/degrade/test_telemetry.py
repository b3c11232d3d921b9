"""Coarser telemetry: which samples are left, and what they say."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from harness.degrade.telemetry import coarse, coarse_telemetry


def host(count: int, name: str = "host0") -> pd.DataFrame:
    """Samples every 10 ns: busy time grows by 1, 2, 3, ..., the run queue is as long."""
    number = range(1, count + 1)
    return pd.DataFrame(
        {
            "host": name,
            "time_ns": [10 * i for i in number],
            "cores": 2,
            "cpu_busy_ns": list(number),
            "run_queue": list(number),
        }
    )


def test_growth_is_summed_and_levels_are_the_last(small: SimpleNamespace) -> None:
    found = coarse("host", small.table("host", host(7)), 3)
    assert found["time_ns"].tolist() == [30, 60]  # the seventh sample never came
    assert found["cpu_busy_ns"].tolist() == [1 + 2 + 3, 4 + 5 + 6]
    assert found["run_queue"].tolist() == [3, 6]


def test_an_entity_with_few_samples_keeps_one(small: SimpleNamespace) -> None:
    frame = small.table("host", pd.concat([host(4), host(2, "host1")]))
    found = coarse("host", frame, 4).sort_values("host")
    assert found["time_ns"].tolist() == [40, 20]
    assert found["cpu_busy_ns"].tolist() == [10, 3]


def test_growth_over_a_sample_that_was_not_read_is_unknown(small: SimpleNamespace) -> None:
    frame = host(4).assign(cpu_busy_ns=pd.array([None, 2, 3, 4], dtype="Int64"))
    found = coarse("host", small.table("host", frame), 2)
    assert found["cpu_busy_ns"].tolist() == [pd.NA, 7]


def test_processes_are_sampled_each_on_its_own(small: SimpleNamespace) -> None:
    rows = [
        {"host": "host0", "process": p, "time_ns": t, "rank": None, "cpu_ns": p + t}
        for p in (1, 2)
        for t in (10, 20, 30, 40)
    ]
    found = coarse("processes", small.table("processes", pd.DataFrame(rows)), 2)
    assert sorted(zip(found["process"], found["time_ns"], found["cpu_ns"], strict=True)) == [
        (1, 20, 11 + 21),
        (1, 40, 31 + 41),
        (2, 20, 12 + 22),
        (2, 40, 32 + 42),
    ]


def test_other_tables_and_cases_without_samples_stay(small: SimpleNamespace) -> None:
    job = small.copy({"steps": small.steps(1, 3), "host": host(4)})
    coarser = coarse_telemetry(job, 2, 0)
    assert coarser.run.tables["steps"] is job.run.tables["steps"]
    assert coarser.reference.frame("host")["time_ns"].tolist() == [20, 40]
    bare = small.copy({"steps": small.steps(1, 3)})
    assert coarse_telemetry(bare, 2, 0) is bare
