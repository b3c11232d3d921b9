from dataclasses import replace

import numpy as np
import pandas as pd

from cases.tables import to_arrow
from injectors.sim.clocks import clocks
from injectors.sim.machine import MACHINES
from injectors.sim.program import Collective, Kind, Label, Op
from injectors.sim.run import Collected
from injectors.sim.tables.collectives import collective_table

MS = 10**6
TOKENS = Label(collective=Collective("all_to_allv", 4_000, "float", "expert", 2))


def table(run) -> pd.DataFrame:
    return collective_table(run, clocks(run.job))


def test_one_row_a_rank_and_collective_in_the_recorders_words(made):
    found = table(made())
    assert len(found) == 6
    assert found["seq"].tolist() == [0, 1, 2, 0, 1, 2]
    first = found.iloc[0]
    words = ["process_group", "op", "bytes", "dtype", "state"]
    assert first[words].tolist() == ["default_pg", "all_reduce", 8_000_000, "bfloat16", "completed"]
    clock = clocks(made().job)
    assert first["created_ns"] == clock.of_ranks(np.array([40 * MS, 50 * MS]))[0]


def test_the_recorder_notes_whole_microseconds_a_little_late(made):
    found = table(made())
    device = found[["started_ns", "completed_ns"]].to_numpy(np.int64)
    assert (device % 1000 == 0).all()
    late = found["completed_ns"].to_numpy() - np.tile([80, 180, 280], 2) * MS
    assert ((late >= -1000) & (late < 200_000)).all()
    assert (found["started_ns"] <= found["completed_ns"]).all()
    assert (found["created_ns"] <= found["started_ns"] + 1000).all()


def test_gloo_tells_no_start(made, job):
    job.machine = replace(MACHINES["cpu"])
    found = table(made(job))
    assert found["started_ns"].isna().all()
    assert to_arrow("collectives", found)["started_ns"].null_count == 6


def test_numbers_count_within_a_group_and_leave_absent_ranks_out(made):
    run = made()
    run.program.ops.insert(6, Op(Kind.COLLECTIVE, "tokens", label=TOKENS, groups="data"))
    here = run.marks["begin"] + 60 * MS
    here[:, 1] = -1
    run.collectives["tokens"] = Collected(here, here, here, here)
    found = table(run)
    experts = found[found["process_group"] == "expert"]
    assert experts["rank"].tolist() == [0, 0, 0]
    assert experts["seq"].tolist() == [0, 1, 2]
    assert set(experts["dtype"]) == {"float32"} and set(experts["op"]) == {"all_to_all"}
    arrow = to_arrow("collectives", found)
    assert arrow["seq"].to_pylist() == found["seq"].tolist()  # the rows are in order already


def test_a_rank_that_is_alone_has_no_collectives(made):
    run = made()
    run.program.ops = [op for op in run.program.ops if op.kind != Kind.COLLECTIVE]
    assert table(run).empty
