"""The table `steps`: every rank's own timing of its steps and their phases.

Phases are laps on the device's time line, as CUDA events give them: each ends with a MARK, or
where a batch (`data_wait_ns`) or the neighbour's activations (waiting, in no phase) have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from injectors.sim.clocks import Clocks
from injectors.sim.noise import Ints
from injectors.sim.program import Kind, Op, Program
from injectors.sim.run import Run
from injectors.sim.tables.checkpoints import saved_steps

PHASES = {
    "data": "data_wait_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
    "checkpoint": "checkpoint_ns",
}
WAITING, REST = "waiting", "rest"
LAP_KINDS = (Kind.MARK, Kind.NEXT_BATCH, Kind.RECV)


def step_table(run: Run, clocks: Clocks, tokens: Ints) -> pd.DataFrame:
    """Return the rows, one a rank and step.

    Args:
        run: What was simulated.
        clocks: Of the hosts.
        tokens: (steps, ranks), tokens or samples that the rank computed.
    """
    ends = clocks.of_ranks(run.marks["end"])
    starts = clocks.of_ranks(run.marks["end"] - run.step_ns)
    steps, ranks = ends.shape
    laps = phases(run)
    columns = {name: laps[name].T.ravel() for name in PHASES.values()}
    return pd.DataFrame(
        {
            "rank": np.repeat(np.arange(ranks), steps),
            "step": np.tile(np.arange(steps), ranks),
            "span": 1,
            "start_ns": starts.T.ravel(),
            "duration_ns": (ends - starts).T.ravel(),
            **columns,
            "tokens": tokens.T.ravel(),
        }
    )


def phases(run: Run) -> dict[str, Ints]:
    """Return the length of each phase, (steps, ranks), by its column."""
    shape = run.step_ns.shape
    found = {name: np.zeros(shape, np.int64) for name in (*PHASES.values(), WAITING, REST)}
    for path, ranks in lap_paths(run.program):
        before = (run.marks["end"] - run.step_ns)[:, ranks]
        for lap in path:
            now = np.maximum(_reached(run, lap, ranks), before)
            found[lap.column][:, ranks] += now - before
            before = now
    saved = np.zeros((shape[0], 1), np.int64)
    saved[saved_steps(run)] = 1
    found[PHASES["checkpoint"]] *= saved  # else the lap between two marks
    return found


@dataclass(frozen=True)
class Lap:
    """Where a lap ends: an op, and the column that the lap belongs to."""

    op: Op
    column: str


def lap_paths(program: Program) -> Iterator[tuple[tuple[Lap, ...], list[int]]]:
    """Yield the laps of a step with the ranks that all run just these."""
    ops = [op for op in program.ops if op.kind in LAP_KINDS]
    members = [set(range(program.ranks) if op.ranks is None else op.ranks) for op in ops]
    alike: dict[tuple[int, ...], list[int]] = {}
    for rank in range(program.ranks):
        own = tuple(i for i, ranks in enumerate(members) if rank in ranks)
        alike.setdefault(own, []).append(rank)
    for own, ranks in alike.items():
        yield tuple(Lap(ops[i], _column(ops[i])) for i in own), ranks


def _column(op: Op) -> str:
    if op.kind == Kind.NEXT_BATCH:
        return PHASES["data"]
    if op.kind == Kind.RECV:
        return WAITING
    return PHASES.get(op.path.partition("/")[0], REST)


def _reached(run: Run, lap: Lap, ranks: list[int]) -> Ints:
    if lap.op.kind == Kind.NEXT_BATCH:
        return run.taken[:, lap.op.batch, ranks]
    if lap.op.kind == Kind.RECV:
        return run.collectives[lap.op.path].end[:, ranks]
    return run.marks[lap.op.path][:, ranks]
