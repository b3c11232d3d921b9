import numpy as np
import pandas as pd
import pytest

from cases.tables import to_arrow
from injectors.sim.clocks import clocks
from injectors.sim.job import ONE, Places
from injectors.sim.machine import MACHINES
from injectors.sim.tables.runtime import runtime_table
from injectors.sim.workloads.experts import MoeTransformer
from injectors.sim.workloads.vision import Vision

MS = 10**6


def table(run) -> pd.DataFrame:
    return runtime_table(run, clocks(run.job))


def events(run, name: str) -> pd.DataFrame:
    found = table(run)
    return found[found["event"] == name]


def test_a_pause_of_the_collector_is_a_full_collection_where_it_happened(made):
    run = made()
    run.conditions[1].pause_ns[0, 1] = 7 * MS
    full = events(run, "gc").query("value == 2")
    assert full["rank"].tolist() == [1]
    assert full["duration_ns"].tolist() == [7 * MS]
    clock = clocks(run.job).of_ranks(run.marks["optimizer"])
    assert full["time_ns"].tolist() == [clock[1, 1]]


def test_young_objects_are_collected_now_and_then_in_every_job(made, make_job):
    job = make_job(places=Places(ranks=2, per_host=1, data=2), steps=3)
    lengths, seconds = [], 0.0
    for seed in range(60):
        job.seed = seed
        lengths += events(made(job), "gc")["duration_ns"].tolist()
        seconds += 2 * 0.3
    assert len(lengths) / seconds == pytest.approx(1 / 1.5, rel=0.4)
    assert max(lengths) < 2 * MS


def test_lengths_of_sequences_add_up_to_the_tokens(made):
    run = made()
    run.conditions[2].work_q16[1, 0] = 2 * ONE
    found = events(run, "sequence_lengths")
    total = found[found["detail"] == "sum"]
    assert set(total["value"]) == {8 * 2048}
    squares = found[(found["detail"] == "sum of squares") & (found["rank"] == 0)]
    assert squares["value"].tolist() == [8 * 2048**2] * 2 + [2 * 8 * 2048**2]


def test_tokens_of_experts_add_up_to_what_is_routed(made, job):
    job.workload = MoeTransformer(experts=8, top_k=2, micro_batch=4)
    job.places = Places(ranks=2, per_host=1, data=2, expert=2)
    run = made(job)
    run.program.work_rows.append("experts")
    for found in run.conditions:
        found.work_q16 = np.concatenate([found.work_q16, [[3 * ONE // 2, ONE // 2]]])
    rows = events(run, "expert_tokens")
    assert set(rows["detail"]) == {f"expert {number}" for number in range(8)}
    assert set(rows.loc[rows["rank"] == 1, "detail"]) == {f"expert {n}" for n in range(4, 8)}
    tokens = rows.groupby("rank")["value"].sum() / 3
    routed = 4 * 2048 * 2
    assert tokens.to_numpy() == pytest.approx([1.5 * routed, 0.5 * routed], rel=0.1)


def test_layers_beyond_the_compilers_limit_are_told_once(made, job):
    job.framework.compiled_share_q16 = ONE // 2
    rows = events(made(job), "recompile_limit")
    assert rows["rank"].tolist() == [0, 1]
    assert set(rows["value"]) == {2}
    assert set(rows["detail"]) == {"layer2.forward, layer3.forward"}
    job.framework.compiled_share_q16 = 0  # a job that never compiles
    assert events(made(job), "recompile_limit").empty


def test_sizes_of_images_come_alike_whether_they_are_tuned_for_or_not(made, job):
    job.workload = Vision()
    plain = events(made(job), "input_size")
    assert plain["value"].iloc[0] == 224
    assert set(plain["detail"]) == {"pixels of an edge"}
    job.compiler.autotune_every, job.compiler.autotune_ns = 4, 10**9
    assert events(made(job), "input_size")["value"].tolist() == plain["value"].tolist()


def test_nothing_at_all_is_a_table_without_rows(made, job):
    job.machine = MACHINES["h100"]
    run = made(job)
    run.program.work_rows.remove("attention")
    run.job.seed = 5  # no young collection in these 0.3 s
    found = table(run)
    assert to_arrow("runtime", found).num_rows == len(found) == 0
