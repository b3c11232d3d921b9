"""Truncated traces: the profiler stopped early, or its buffer was full."""

from __future__ import annotations

import numpy as np

from harness.degrade.copies import CaseCopy, RunCopy
from harness.degrade.trace_text import Event, heads, keep


def truncated_traces(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Keep of each trace only what had ended when a share of its time was still to come.

    An event that was open at the cut was never written. Alike in the reference run.

    Args:
        copy: The case.
        level: Share of each trace's time that is lost.
        seed: Draws nothing here.
    """
    if not copy.run.traces:
        return copy
    reference = copy.reference and _cut_run(copy.reference, level)
    return copy.with_runs(_cut_run(copy.run, level), reference)


def _cut_run(run: RunCopy, level: float) -> RunCopy:
    return run.with_traces({rank: cut(run.trace(rank), level) for rank in run.traces})


def cut(content: bytes, level: float) -> bytes:
    """Cut one trace's JSON text."""
    found = heads(content)
    timed = ~found.span & ~np.isnan(found.start_us)
    if not timed.any():
        return content
    first_us, end_us = found.start_us[timed].min(), found.end_us[timed].max()
    last_us = float(first_us + (1 - level) * (end_us - first_us))

    def shorten(event: Event) -> None:
        if isinstance(event.get("dur"), int | float):
            event["dur"] = round(min(event["dur"], max(last_us - event["ts"], 0.0)), 3)

    return keep(content, ~timed | (found.end_us <= last_us), shorten)
