"""Dropped events: rows and trace events that never reached whoever wrote them down."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.degrade.copies import CaseCopy, RunCopy
from harness.degrade.trace_text import heads, keep
from injectors.sim import noise

EVENT_TABLES = ("steps", "collectives", "loader", "runtime", "logs", "requests", "engine", "jobs")


def dropped_events(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Drop each row of the tables of events, and each event of a trace, by a chance of its own.

    Samples are no events and stay; so does what a trace says about itself. Higher levels drop
    what lower ones do, and more. The reference run loses others.

    Args:
        copy: The case.
        level: Chance of each event to be lost.
        seed: Of which are.
    """
    key = noise.key(seed, "dropped events", copy.info.id)
    reference = copy.reference and _thinned(copy.reference, level, key, "reference")
    return copy.with_runs(_thinned(copy.run, level, key, "run"), reference)


def _thinned(run: RunCopy, level: float, key: int, which: str) -> RunCopy:
    frames = {name: run.frame(name) for name in EVENT_TABLES if name in run.tables}
    left = {
        name: frame.loc[_kept(noise.extend(key, which, name, np.arange(len(frame))), level)]
        for name, frame in frames.items()
    }
    traces = {
        rank: thinned(run.trace(rank), level, noise.key(key, which, "trace", rank))
        for rank in run.traces
    }
    return run.with_tables(left).with_traces(traces)


def thinned(content: bytes, level: float, key: int) -> bytes:
    """Drop events of one trace's JSON text, drawn by `key`."""
    found = heads(content)
    draws = noise.extend(key, np.arange(len(found.metadata)))
    return keep(content, found.metadata | _kept(draws, level))


def _kept(draws: noise.Keys, level: float) -> npt.NDArray[np.bool_]:
    """Say of each event whether it stays."""
    stays: npt.NDArray[np.bool_] = noise.uniform_q16(draws) >= int(level * noise.ONE_Q16)
    return stays
