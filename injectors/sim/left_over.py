"""Ways to leave less of a recording, from which patterns of withholding are put together.

All take a recording and return another one; tables that it lacks are left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from cases.bundle import RunData
from cases.tables import TABLES
from injectors.sim import noise

Columns = Mapping[str, tuple[str, ...]]
LARGEST_SHIFT_NS = 2 * 10**9
PROGRESS = r"^step \d+: "
SET_VARIABLE = "set by environment"
CLOCK_COLUMNS = ("time_ns", "start_ns", "created_ns", "started_ns", "completed_ns")


def keep(run: RunData, tables: Collection[str]) -> RunData:
    """Keep only some tables, and no traces."""
    return RunData({name: frame for name, frame in run.tables.items() if name in tables}, {})


def without(run: RunData, columns: Columns) -> RunData:
    """Null columns of tables."""
    tables = dict(run.tables)
    for name in columns.keys() & tables.keys():
        nulls = {column: pd.Series(pd.NA, tables[name].index) for column in columns[name]}
        tables[name] = tables[name].assign(**nulls)
    return replace(run, tables=tables)


def _changed(run: RunData, name: str, frame: pd.DataFrame) -> RunData:
    return replace(run, tables={**run.tables, name: frame.reset_index(drop=True)})


def overall(run: RunData) -> RunData:
    """Leave of each rank's steps the job's mean wall time and when that was taken: from 0 on.

    How walls change in the course of a run, and by how little ranks differ, would tell a late
    loader from a slow link. The first step is left out, as it may set things up.
    """
    if "steps" not in run.tables:
        return run
    own = run.tables["steps"]
    own = own[own["step"] > 0]
    ranks = np.unique(own["rank"])
    count, tokens = len(own) // len(ranks), own["tokens"].sum(min_count=1)
    frame = pd.DataFrame({"rank": ranks}).assign(
        step=int(own["step"].max()),
        span=count,
        start_ns=0,
        duration_ns=int(own["duration_ns"].sum()) // len(own),
        tokens=tokens if pd.isna(tokens) else int(tokens) // len(ranks),
    )
    return _changed(run, "steps", frame)


def of_rank(run: RunData, rank: int) -> RunData:
    """Keep one rank's rows of every table that has ranks."""
    tables = {
        name: frame[frame["rank"] == rank].reset_index(drop=True)
        if "rank" in TABLES[name].order
        else frame
        for name, frame in run.tables.items()
    }
    return replace(run, tables=tables)


def one_sample(run: RunData, name: str) -> RunData:
    """Keep of a sampled table what an agent that reads every 30 s has, without its time.

    Counters are what they grew in all, levels those of a sample in the middle.
    """
    if name not in run.tables:
        return run
    table = TABLES[name]
    key = next(column for column in table.order if column != "time_ns")
    rows = []
    for _, own in run.tables[name].groupby(key, sort=True):
        row = own.iloc[[len(own) // 2]].copy()
        for column in table.growth:
            row[column] = own[column].sum(min_count=1)
        rows.append(row)
    return without(_changed(run, name, pd.concat(rows)), {name: ("time_ns",)})


def without_progress(run: RunData) -> RunData:
    """Leave out lines of the log that report how long steps take, and when lines were written."""
    if "logs" not in run.tables:
        return run
    logs = run.tables["logs"]
    reports = logs["message"].str.contains(PROGRESS, regex=True)
    return without(_changed(run, "logs", logs[~reports]), {"logs": ("time_ns",)})


def without_variables(run: RunData) -> RunData:
    """Leave out lines of the log that tell of variables that were set."""
    logs = run.tables["logs"]
    return _changed(run, "logs", logs[~logs["message"].str.contains(SET_VARIABLE, regex=False)])


def shift_hosts(run: RunData) -> RunData:
    """Set the clocks of hosts up to 2 s apart, the same in every recording of these hosts."""
    processes = run.tables["processes"]
    ranks = processes.loc[processes["role"] == "rank", ["rank", "host"]].drop_duplicates()
    host_of = dict(zip(ranks["rank"].astype("int64"), ranks["host"], strict=True))
    tables = {name: _shifted(name, frame, host_of) for name, frame in run.tables.items()}
    return replace(run, tables=tables)


def _shifted(name: str, frame: pd.DataFrame, host_of: Mapping[int, str]) -> pd.DataFrame:
    if "rank" in TABLES[name].order:
        hosts = frame["rank"].map(host_of)
    elif "host" in frame:
        hosts = frame["host"]
    else:
        return frame
    by = hosts.map({host: _shift_ns(host) for host in sorted(set(hosts))}).astype("int64")
    columns = [column for column in CLOCK_COLUMNS if column in frame]
    return frame.assign(**{column: frame[column] + by for column in columns})


def _shift_ns(host: str) -> int:
    drawn = noise.uniform_q16(np.asarray([noise.key(0, "unaligned", host)], np.uint64))
    return int(noise.scale_q16(drawn, LARGEST_SHIFT_NS)[0])
