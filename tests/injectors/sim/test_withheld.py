from typing import get_args

import numpy as np
import pandas as pd
import pytest

from cases.bundle import RunData
from cases.errors import ScenarioError
from cases.tables import TABLES, to_arrow
from cases.taxonomy import Taxonomy
from injectors.scenario import Withheld
from injectors.sim.left_over import one_sample, overall, shift_hosts
from injectors.sim.withheld import CANDIDATES, PATTERNS, withhold

TAXONOMY = Taxonomy.load()
RECORDED = ("nothing", "all_but_progress", "all_but_steps")
OWN = [name for name in PATTERNS if name not in RECORDED]
TRAINING = (
    "steps",
    "collectives",
    "gpu",
    "host",
    "network",
    "processes",
    "loader",
    "runtime",
    "logs",
)
# Left although a candidate is decided by it: it says nothing without what was taken away.
HARMLESS = {
    "collectives.bytes": "of a slow link, only against times; imbalance has a pattern without it",
    "collectives.seq": "a number without times",
    "runtime.event": "that loads were noted, not which",
    "runtime.detail": "names of experts",
    "gpu.memory_total_bytes": "what the device has",
    "environment.nccl": "no part of a recording",
    "steps.duration_ns": "the same of all",
    "network.tx_bytes": "a step sends as many bytes whatever makes it slow",
    "trace_events.duration_ns": "left by one pattern, whose candidates all slow one device's clock",
}


def recording(ranks: int = 4, steps: int = 41) -> RunData:
    """A recording whose every column holds something, two ranks on each host."""
    rank, step = (a.ravel() for a in np.meshgrid(np.arange(ranks), np.arange(steps), indexing="ij"))
    tables = {}
    for name in (*TRAINING, "requests", "engine"):
        frame = pd.DataFrame(index=range(len(rank)))
        for column, (kind, _) in TABLES[name].columns.items():
            frame[column] = "x" if kind == "text" else step * 10 + rank + 1
        for column, values in (("rank", rank), ("step", step), ("host", rank // 2)):
            if column in frame:
                frame[column] = values
        if "host" in frame:
            frame["host"] = "host" + frame["host"].astype(str)
        tables[name] = frame
    tables["processes"]["role"] = "rank"
    tables["logs"]["message"] = [
        ("step 10: loss 1.0, 5.0 ms/step", "NCCL INFO NCCL_PROTO set by environment to LL", "x")[
            n % 3
        ]
        for n in range(len(rank))
    ]
    return RunData(tables, {0: b"trace", 1: b"trace"})


def there(run: RunData) -> set[str]:
    """Columns that hold anything, as the taxonomy writes them."""
    found = {
        f"{name}.{column}"
        for name, frame in run.tables.items()
        for column in frame
        if frame[column].notna().any()
    }
    logs = run.tables.get("logs")
    if logs is not None and logs["message"].str.startswith("step ").all():
        found.discard("logs.message")  # progress tells nothing but the steps' length
    return found | ({"trace_events.duration_ns"} if run.traces else set())


def test_every_way_that_scenarios_know_has_a_pattern_and_candidates():
    assert {*PATTERNS} == {*CANDIDATES} == {*get_args(Withheld)}


@pytest.mark.parametrize("name", OWN)
def test_the_taxonomy_names_the_candidates_but_one_that_costs_too_much(name):
    named = TAXONOMY.insufficient[name].candidates
    assert CANDIDATES[name] == tuple(c for c in named if c != "nccl_transport_fallback")
    assert len(CANDIDATES[name]) > 1


@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_left_is_a_valid_recording(name):
    left = withhold(recording(), name)
    for table, frame in left.tables.items():
        assert to_arrow(table, frame).num_rows == len(frame) > 0


@pytest.mark.parametrize("name", OWN)
def test_no_decisive_signal_tells_the_candidates_apart(name):
    left = there(withhold(recording(), name))
    decisive = [
        {*TAXONOMY.causes[cause].decisive_signals} & left - {*HARMLESS}
        for cause in CANDIDATES[name] or ()
    ]
    assert all(signals == decisive[0] for signals in decisive)


@pytest.mark.parametrize("name", OWN)
def test_something_is_missing_and_the_recording_is_not_changed(name):
    whole = recording()
    before = there(whole)
    assert there(withhold(whole, name)) < before
    assert there(whole) == before


# What a classifier could not tell candidates apart by (tests/studies/collisions.py); with hosts,
# processes, loaders or runtime events beside these it could.
LEFT = {
    "all_but_progress": {"steps"},
    "step_walls_only": {"steps", "collectives", "logs"},
    "single_rank_trace": {"steps", "collectives", "logs"},
    "collectives_without_token_counts": {"steps", "collectives"},
    "version_drop_without_counters": {"steps", "collectives", "gpu", "runtime", "logs"},
    "coarse_sampling": {"steps", "collectives", "gpu", "network", "logs"},
    "coarse_microbatch_timers": {"steps", "collectives", "runtime", "logs"},
    "unaligned_clocks": {"steps", "collectives", "logs"},
    "congestion_mark_only": {"steps", "collectives", "network", "runtime", "logs"},
    "unlogged_preemptions": {"steps"},
    "everything_changed_together": {"steps", "collectives", "runtime"},
}


@pytest.mark.parametrize("name", LEFT)
def test_tables_by_which_candidates_were_told_apart_are_gone(name):
    left = withhold(recording(), name)
    assert {*left.tables} <= LEFT[name] and not left.traces


@pytest.mark.parametrize("name", OWN)
def test_of_steps_the_mean_is_left_that_all_ranks_share(name):
    steps = withhold(recording(), name).tables["steps"]
    assert {*steps} == {"rank", "step", "span", "start_ns", "duration_ns", "tokens"}
    assert steps["rank"].is_unique and steps["duration_ns"].nunique() == 1
    assert steps["span"].eq(40).all()


def test_the_mean_leaves_the_first_step_out():
    own = overall(recording(ranks=2, steps=41)).tables["steps"]
    # Durations are 10 n + rank + 1: over n = 1..40 and both ranks their mean is 206.5.
    assert own["duration_ns"].tolist() == [206, 206]
    assert own["step"].tolist() == [40, 40]
    assert own["start_ns"].tolist() == [0, 0]


@pytest.mark.parametrize("name", [n for n in OWN if n != "no_baseline_single_gpu"])
def test_nothing_says_how_long_it_took_in_another_way(name):
    left = withhold(recording(), name)
    if "runtime" in left.tables:
        assert left.tables["runtime"][["time_ns", "duration_ns"]].isna().all(axis=None)
    if "logs" in left.tables:
        assert left.tables["logs"]["time_ns"].isna().all()
        assert not left.tables["logs"]["message"].str.startswith("step ").any()


def test_one_sample_adds_counters_up_and_keeps_a_level_of_the_middle():
    network = one_sample(recording(ranks=2, steps=3), "network").tables["network"]
    assert network["tx_bytes"].tolist() == [1 + 11 + 21, 2 + 12 + 22]
    assert network["send_queue_bytes"].tolist() == [11, 12]
    assert network["time_ns"].isna().all()


def test_clocks_are_shifted_by_host_and_alike_everywhere():
    whole = recording()
    shifted = shift_hosts(whole)
    by = shifted.tables["steps"]["start_ns"] - whole.tables["steps"]["start_ns"]
    first, second = (set(by[whole.tables["steps"]["rank"] // 2 == host]) for host in (0, 1))
    assert len(first) == len(second) == 1 and abs(first.pop() - second.pop()) > 10**6
    lengths = [t["completed_ns"] - t["created_ns"] for t in (
        whole.tables["collectives"], shifted.tables["collectives"])]  # fmt: skip
    assert lengths[0].equals(lengths[1])


def test_single_rank_leaves_one_rank():
    left = withhold(recording(), "single_rank_trace")
    assert all(set(frame["rank"]) == {0} for frame in left.tables.values())


def test_variables_of_nccl_leave_the_log_where_they_would_tell():
    assert not any(
        "set by environment" in message
        for name in ("version_drop_without_counters", "coarse_microbatch_timers")
        for message in withhold(recording(), name).tables["logs"]["message"]
    )


def test_an_unknown_pattern_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ScenarioError, match="step_walls_only"):
        withhold(recording(), "everything")
