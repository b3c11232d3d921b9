"""Tables of each engine's own ranks and host, put together under the whole job's names."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from injectors.sim.program import Ints
from injectors.sim.run import Run
from injectors.sim.serving.replica import Step
from injectors.sim.tables.activity import Activity, activity
from injectors.sim.tables.gpu import gpu_table
from injectors.sim.tables.host import host_table
from injectors.sim.tables.nccl_words import nccl_lines
from injectors.sim.tables.processes import process_table
from injectors.sim.tables.runtime import runtime_table

GUARD = "tl.constexpr BLOCK_M: expected 16, actual {size} (kernel not compiled for this shape)"


def engine_tables(run: Run, steps: Sequence[Step]) -> tuple[dict[str, pd.DataFrame], Activity]:
    """Return what one engine's host, devices and processes tell, ranks and host counted from 0."""
    done = activity(run)
    found = {
        "gpu": gpu_table(run, done.samples, done.traffic),
        "host": host_table(run, done.samples, done),
        "processes": process_table(run, done.samples, done),
        "runtime": _events(run, steps, done),
    }
    return found, done


def _events(run: Run, steps: Sequence[Step], done: Activity) -> pd.DataFrame:
    frames = [runtime_table(run, done.clocks), _compiled(run, steps)]
    there = [frame for frame in frames if len(frame)]
    return pd.concat(there, ignore_index=True) if there else frames[0]


def together(tables: Sequence[dict[str, pd.DataFrame]], tensor: int) -> dict[str, pd.DataFrame]:
    """Put the engines' tables under each other: ranks, hosts and processes go on counting."""
    found: dict[str, list[pd.DataFrame]] = {}
    processes = 0
    for engine, own in enumerate(tables):
        for name, frame in own.items():
            moved = frame.copy()
            if "rank" in moved:
                moved["rank"] = moved["rank"] + engine * tensor
            if "host" in moved:
                moved["host"] = f"host{engine}"
            if name == "processes":
                moved["process"] = moved["process"] + processes
            found.setdefault(name, []).append(moved)
        processes += int(own["processes"]["process"].max()) + 1
    return {
        name: pd.concat([f for f in frames if len(f)] or frames[:1], ignore_index=True)
        for name, frames in found.items()
    }


def _compiled(run: Run, steps: Sequence[Step]) -> pd.DataFrame:
    """Code that was compiled under a request: every rank of the engine does it by itself."""
    at: Ints = run.pauses["pause/jit"]
    rows = [
        {
            "rank": rank,
            "time_ns": int(at[number, rank]),
            "event": "recompile",
            "duration_ns": step.jit_ns,
            "value": 1.0,
            "detail": GUARD.format(size=16 << (step.number % 3 + 1)),
        }
        for number, step in enumerate(steps)
        if step.jit_ns
        for rank in range(run.program.ranks)
    ]
    return pd.DataFrame(
        rows, columns=["rank", "time_ns", "event", "duration_ns", "value", "detail"]
    )


def words_before(run: Run) -> list[str]:
    """What an engine's first rank printed when it started."""
    return list(nccl_lines(run.job))
