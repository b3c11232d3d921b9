"""Missing ranks: which ones, and what goes with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from harness.degrade.ranks import chosen, missing_ranks


@pytest.fixture
def job(small: SimpleNamespace) -> Any:
    hosts = pd.DataFrame({"host": ["host0", "host1"], "time_ns": [5, 5], "cpu_busy_ns": [1, 2]})
    processes = pd.DataFrame(
        {
            "host": ["host0", "host0", "host1", "host1"],
            "process": [0, 9, 2, 8],
            "time_ns": 5,
            "rank": [0, None, 2, None],
        }
    )
    frames = {"steps": small.steps(4, 2), "host": hosts, "processes": processes}
    return small.copy(frames, {0: small.trace(small.operator(1, 1))})


def test_shares_of_four_ranks_are_rounded_and_nested(job: Any) -> None:
    levels = [set(chosen(job, level, seed=1)) for level in (0.25, 0.5, 0.75, 1.0)]
    assert [len(missing) for missing in levels] == [1, 2, 3, 3]  # one is always left
    assert levels[0] < levels[1] < levels[2] == levels[3]


def test_seeds_choose_other_ranks(job: Any) -> None:
    assert len({tuple(chosen(job, 0.25, seed)) for seed in range(20)}) == 4


def test_rows_traces_and_hosts_of_missing_ranks_are_gone(job: Any) -> None:
    seed = next(s for s in range(100) if chosen(job, 0.5, s) == [2, 3])
    left = missing_ranks(job, 0.5, seed)
    for run in (left.run, left.reference):
        assert run.frame("steps")["rank"].tolist() == [0, 0, 1, 1]
        assert run.frame("host")["host"].tolist() == ["host0"]
        # What runs beside the ranks belongs to the host: it stays on the host that is left.
        assert run.frame("processes")["process"].tolist() == [0, 9]
        assert list(run.traces) == [0]


def test_a_host_with_one_rank_left_keeps_its_samples(job: Any) -> None:
    seed = next(s for s in range(100) if chosen(job, 0.25, s) == [2])
    left = missing_ranks(job, 0.25, seed)
    assert left.run.frame("host")["host"].tolist() == ["host0", "host1"]
    assert left.run.frame("processes")["process"].tolist() == [0, 9, 8]


def test_a_signal_of_missing_ranks_alone_is_absent(job: Any) -> None:
    seed = next(s for s in range(100) if chosen(job, 0.25, s) == [0])
    left = missing_ranks(job, 0.25, seed)
    assert left.info.signals.present == ("steps", "host", "processes")
    assert left.info.signals.absent == ("trace_events",)


def test_one_rank_is_left_as_it_is(small: SimpleNamespace) -> None:
    alone = small.copy({"steps": small.steps(1, 2)}, hosts=("host0",))
    assert missing_ranks(alone, 0.75, 0) is alone
