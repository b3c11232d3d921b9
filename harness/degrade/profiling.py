"""Profiler overhead: the profiled steps take longer, because writing them down does."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.degrade.copies import CaseCopy, RunCopy
from harness.degrade.trace_text import METADATA, Event, change, heads, moved_us
from injectors.sim import noise
from injectors.sim.noise import Ints

PROFILED = "profiled_steps"
PARTS = ("data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "checkpoint_ns")
# Devices run as fast as ever; they only get their work later.
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def profiler_overhead(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Stretch the profiled part of the run, and say so in the case's `profiler_overhead`.

    The profiled steps, the collectives in them and all that hosts do in the traces take `level`
    times as long, work on devices begins as much later. Only in the run that is asked about: in
    both alike it would cancel. Cases without traces stay as they are.

    Args:
        copy: The case.
        level: How many times as long the profiled steps take.
        seed: Draws nothing here.
    """
    count = copy.info.environment.config.get(PROFILED)
    if not copy.run.traces or not isinstance(count, int) or count < 1:
        return copy
    told = copy.info.provenance.profiler_overhead
    info = copy.info
    if told is not None:
        provenance = info.provenance.model_copy(
            update={"profiler_overhead": round(told * level, 3)}
        )
        info = info.model_copy(update={"provenance": provenance})
    run = _stretched(copy.run, count, int(level * noise.ONE_Q16))
    traces = {rank: stretched(run.trace(rank), level) for rank in run.traces}
    return CaseCopy(info, run.with_traces(traces), copy.reference, copy.digests)


def _stretched(run: RunCopy, count: int, factor_q16: int) -> RunCopy:
    if "steps" not in run.tables or run.frame("steps").empty:
        return run
    steps = run.frame("steps")
    inside = steps["step"] > steps["step"].max() - count
    begin_ns = int(steps.loc[inside, "start_ns"].min())
    frames = {"steps": _stretched_steps(steps, inside, begin_ns, factor_q16)}
    if "collectives" in run.tables:
        frames["collectives"] = _stretched_times(run.frame("collectives"), begin_ns, factor_q16)
    return run.with_tables(frames)


def _stretched_steps(
    steps: pd.DataFrame, inside: pd.Series[bool], begin_ns: int, factor_q16: int
) -> pd.DataFrame:
    start, end = steps["start_ns"], steps["start_ns"] + steps["duration_ns"]
    later = _later(start, begin_ns, factor_q16)
    lengths = _later(end, begin_ns, factor_q16) - later
    changed = {"start_ns": start.where(~inside, later)}
    changed["duration_ns"] = steps["duration_ns"].where(~inside, lengths)
    for part in PARTS:
        longer = _times(steps[part], factor_q16)
        changed[part] = steps[part].where(~inside, longer)
    return steps.assign(**changed)


def _stretched_times(frame: pd.DataFrame, begin_ns: int, factor_q16: int) -> pd.DataFrame:
    names = ("created_ns", "started_ns", "completed_ns")
    return frame.assign(**{name: _later(frame[name], begin_ns, factor_q16) for name in names})


def _later(times: pd.Series[int], begin_ns: int, factor_q16: int) -> pd.Series[int]:
    """Move what lies behind `begin_ns` as many times further behind."""
    return times.where(times < begin_ns, begin_ns + _times(times - begin_ns, factor_q16))


def _times(lengths: pd.Series[int], factor_q16: int | Ints) -> pd.Series[int]:
    return lengths * factor_q16 // noise.ONE_Q16


def stretched(content: bytes, level: float) -> bytes:
    """Stretch the times of one trace's JSON text about its first event."""
    starts_us = heads(content).start_us
    if np.isnan(starts_us).all():
        return content
    first_us = float(np.nanmin(starts_us))

    def stretch(event: Event) -> None:
        if "ts" in event and event.get("ph") != METADATA:
            event["ts"] = moved_us(event["ts"], 0.0, level, first_us)
        if "dur" in event and event.get("cat") not in ON_DEVICE:
            event["dur"] = moved_us(event["dur"], 0.0, level)

    return change(content, stretch)
