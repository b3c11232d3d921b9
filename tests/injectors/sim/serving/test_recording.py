"""What is recorded of a server: tables that fit together, and traces that tools can read."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest

from cases.bundle import RunData
from cases.tables import TABLES, to_arrow
from injectors.sim.kineto.gates import problems
from injectors.sim.serving import record_serving
from tests.injectors.sim.serving.jobs import serving_job

TOKENS = 480  # of a step


@cache
def _recorded(disaggregated: bool = False) -> tuple[RunData, float]:
    job = serving_job(
        ranks=4, engines=2, layers=4, steps=20, disaggregated=disaggregated, max_concurrency=24
    )
    return record_serving(job, (0, 3))


def _table(name: str, disaggregated: bool = False) -> pd.DataFrame:
    found: pd.DataFrame = to_arrow(name, _recorded(disaggregated)[0].tables[name]).to_pandas()
    return found


def test_all_tables_have_their_columns() -> None:
    for disaggregated in (False, True):
        found = _recorded(disaggregated)[0].tables
        expected = {
            "requests", "engine", "steps", "gpu", "host", "processes", "runtime", "logs",
        }  # fmt: skip
        assert set(found) == expected | ({"network"} if disaggregated else set())
        for name, frame in found.items():
            assert list(to_arrow(name, frame).schema.names) == list(TABLES[name].columns)
            for column in TABLES[name].growth:
                assert (frame[column] >= 0).all(), (name, column)


def test_the_stated_seconds_are_those_of_the_steps() -> None:
    data, seconds = _recorded()
    steps = data.tables["steps"]
    later = steps[steps["step"] > 0]
    assert seconds == pytest.approx(later["duration_ns"].mean() / TOKENS / 1e9, rel=1e-12)


def test_tokens_of_steps_are_those_of_the_engines() -> None:
    steps, engine, requests = _table("steps"), _table("engine"), _table("requests")
    generated = steps.loc[steps["rank"] == 0, "tokens"].sum()
    first_tokens = (requests["first_token_ns"] > 0).sum()
    whole = engine["decode_tokens"].sum() + first_tokens
    assert generated == pytest.approx(whole, rel=0.03)  # the last engine steps end later


def test_requests_lie_in_the_recording_and_in_their_own_order() -> None:
    requests, engine = _table("requests"), _table("engine")
    end = (engine["start_ns"] + engine["duration_ns"]).max()
    done = requests.dropna(subset=["first_token_ns", "finished_ns"])
    assert len(done) > 20 and (done["finished_ns"] >= 0).all() and done["finished_ns"].max() <= end
    assert (done["scheduled_ns"] >= done["arrival_ns"]).all()
    assert (done["first_token_ns"] > done["scheduled_ns"]).all()
    assert (done["finished_ns"] > done["first_token_ns"]).all()
    assert set(requests["engine"]) == {"engine0", "engine1"}


def test_engine_steps_are_numbered_and_their_host_time_is_a_part_of_them() -> None:
    engine = _table("engine")
    for _, own in engine.groupby("engine"):
        assert own["step"].tolist() == list(range(len(own)))
        assert own["start_ns"].is_monotonic_increasing
        # The first may have begun before the recording.
        assert (own["start_ns"] + own["duration_ns"] > 0).all()
    assert (engine["scheduler_ns"] < engine["duration_ns"]).all()
    assert engine["kv_cache_usage"].between(0, 1).all()


def test_each_rank_and_host_is_told_of_once() -> None:
    assert set(_table("gpu")["rank"]) == {0, 1, 2, 3}
    assert set(_table("host")["host"]) == {"host0", "host1"}
    processes = _table("processes")
    ranks = processes.dropna(subset=["rank"]).groupby("rank")
    assert {rank: set(own["host"]) for rank, own in ranks} == {
        0: {"host0"}, 1: {"host0"}, 2: {"host1"}, 3: {"host1"},
    }  # fmt: skip
    assert (processes.groupby("process")["host"].nunique() == 1).all()


def test_devices_work_for_most_of_the_time_at_less_than_their_limit() -> None:
    gpu = _table("gpu")
    assert 20 < gpu["utilization_percent"].mean() < 95
    assert gpu["power_w"].mean() < 0.8 * gpu["power_limit_w"].mean()
    assert gpu["sm_clock_mhz"].min() > 1_900


def test_interfaces_carry_what_was_handed_on() -> None:
    network = _table("network", disaggregated=True).groupby("rank")
    sent, received = network["tx_bytes"].sum(), network["rx_bytes"].sum()
    assert (sent[[0, 1]] > 10**6).all() and (received[[2, 3]] > 10**6).all()
    assert (sent[[2, 3]] < 10**5).all() and (received[[0, 1]] == 0).all()
    assert sent[[0, 1]].sum() == pytest.approx(received[[2, 3]].sum(), rel=0.1)


def test_recording_again_gives_the_same_bytes() -> None:
    once, again = (record_serving(serving_job(layers=2, steps=4), (0,)) for _ in range(2))
    assert once[1] == again[1] and once[0].traces == again[0].traces
    for name, frame in once[0].tables.items():
        pd.testing.assert_frame_equal(frame, again[0].tables[name])


def test_traces_pass_the_gates_and_show_engine_steps() -> None:
    traces = _recorded()[0].traces
    assert set(traces) == {0, 3}
    for packed in traces.values():
        trace = json.loads(gzip.decompress(packed))
        assert list(problems(trace)) == []
        names = Counter(event["name"] for event in trace["traceEvents"])
        assert names["execute_model"] == 3 and names["cudaGraphLaunch"] >= 1
        assert not any(name.startswith("ProfilerStep") for name in names)
        assert trace["distributedInfo"]["world_size"] == 4


def test_code_that_is_compiled_under_a_request_is_told_of_by_every_rank() -> None:
    job = serving_job(ranks=2, layers=4, steps=10)
    job.compiler.jit_every, job.compiler.jit_ns = 20, 50_000_000
    tables = record_serving(job, ())[0].tables
    events = tables["runtime"][tables["runtime"]["event"] == "recompile"]
    assert len(events) >= 4 and events["detail"].str.len().min() > 10
    assert sorted(events["rank"].unique()) == [0, 1]
    engine = tables["engine"]
    ends = engine["start_ns"] + engine["duration_ns"]
    for at in events["time_ns"]:
        assert ((engine["start_ns"] <= at) & (at <= ends)).sum() == 1
    assert np.isclose(events["duration_ns"].astype(float).mean(), 50e6, rtol=0.3)
