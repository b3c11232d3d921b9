"""Clock skew: how far apart clocks are, and that everything of a host follows its clock."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from cases.tables import TABLES
from harness.degrade.clocks import TIMES, clock_skew

MS = 1_000_000


def offsets(before: pd.DataFrame, after: pd.DataFrame, column: str) -> list[int]:
    return (after[column] - before[column]).tolist()


def test_clocks_are_exactly_as_far_apart_as_the_level_says(small: SimpleNamespace) -> None:
    job = small.copy({"steps": small.steps(4, 1)}, hosts=("a", "b", "c", "b"))
    for seed in range(5):
        skewed = clock_skew(job, 3 * MS, seed)
        moved = offsets(job.run.frame("steps"), skewed.run.frame("steps"), "start_ns")
        assert (min(moved), max(moved)) == (0, 3 * MS)
        assert moved[1] == moved[3]  # both on b
        assert moved != offsets(job.run.frame("steps"), skewed.reference.frame("steps"), "start_ns")


def test_all_that_a_host_writes_down_follows_its_clock(small: SimpleNamespace) -> None:
    times = {"created_ns": 7, "started_ns": None, "completed_ns": 9}
    ranks = pd.DataFrame({"rank": range(4), "process_group": "world", "seq": 0, **times})
    frames = {
        "steps": small.steps(4, 1),
        "collectives": ranks,
        "host": pd.DataFrame({"host": ["host0", "host1"], "time_ns": 5}),
        "logs": pd.DataFrame({"rank": range(4), "time_ns": 1, "message": "m"}),
    }
    traces = {rank: small.trace(small.operator(1.0, 1.0)) for rank in (1, 2)}
    job = small.copy(frames, traces)
    skewed = clock_skew(job, MS, 3).run
    apart = offsets(job.run.frame("host"), skewed.frame("host"), "time_ns")
    assert sorted(apart) == [0, MS]
    by_rank = [apart[0], apart[0], apart[1], apart[1]]
    for table, column in (
        ("steps", "start_ns"),
        ("collectives", "created_ns"),
        ("collectives", "completed_ns"),
        ("logs", "time_ns"),
    ):
        assert offsets(job.run.frame(table), skewed.frame(table), column) == by_rank, column
    assert skewed.frame("collectives")["started_ns"].isna().all()
    for rank in (1, 2):
        (event,) = small.events(skewed.trace(rank))
        assert event["ts"] == 1.0 + by_rank[rank] / 1000


def test_hosts_of_one_job_have_one_clock(small: SimpleNamespace) -> None:
    job = small.copy({"steps": small.steps(2, 1)}, hosts=("host0", "host0"))
    assert clock_skew(job, MS, 0) is job


@pytest.mark.parametrize("name", TIMES)
def test_no_time_of_a_table_is_forgotten(name: str) -> None:
    ends = ("time_ns", "start_ns", "created_ns", "started_ns", "completed_ns")
    assert set(TIMES[name]) == set(TABLES[name].columns) & set(ends)
