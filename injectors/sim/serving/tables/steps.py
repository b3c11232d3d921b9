"""The tables `steps` and `logs`: a step of the job is so many tokens of all engines together.

All ranks have the same steps. In `forward_ns` a rank has what its own engine's model ran in them,
in `data_wait_ns` the time in which its engine had nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from injectors.recorder.rank import LOG_EVERY
from injectors.sim.program import Ints
from injectors.sim.serving.replica import Step


def step_table(
    steps: Sequence[Sequence[Step]], ends_ns: Ints, tokens: Sequence[int], tensor: int
) -> pd.DataFrame:
    """Return the rows, one a rank and step.

    Args:
        steps: Of each engine.
        ends_ns: (steps + 1,), when the recording began and each step ended.
        tokens: Generated in each step.
        tensor: Ranks of an engine.
    """
    frames = [
        _rows(number * tensor + lane, own, ends_ns, tokens)
        for number, own in enumerate(steps)
        for lane in range(tensor)
    ]
    return pd.concat(frames, ignore_index=True)


def _rows(rank: int, steps: Sequence[Step], ends_ns: Ints, tokens: Sequence[int]) -> pd.DataFrame:
    took = np.diff(ends_ns)
    model = np.array([s.end_ns - s.begin_ns - s.scheduler_ns for s in steps], np.int64)
    ended = np.array([step.end_ns for step in steps], np.int64)
    idle = _gaps(steps, int(ends_ns[0]))
    return pd.DataFrame(
        {
            "rank": rank,
            "step": np.arange(len(took)),
            "span": 1,
            "start_ns": ends_ns[:-1] - ends_ns[0],
            "duration_ns": took,
            "data_wait_ns": np.minimum(_within(ended, idle, ends_ns), took),
            "forward_ns": np.minimum(_within(ended, model, ends_ns), took),
            "backward_ns": pd.array([pd.NA] * len(took), "Int64"),
            "optimizer_ns": pd.array([pd.NA] * len(took), "Int64"),
            "checkpoint_ns": 0,
            "tokens": tokens,
        }
    )


def _gaps(steps: Sequence[Step], begin_ns: int) -> Ints:
    """Time between the end of the step before and the beginning of each."""
    before = [begin_ns, *(step.end_ns for step in steps[:-1])]
    gaps = [max(s.begin_ns - end, 0) for s, end in zip(steps, before, strict=True)]
    return np.array(gaps, np.int64)


def _within(ended_ns: Ints, values: Ints, ends_ns: Ints) -> Ints:
    """Add values up by the step of the job in which they ended."""
    found = np.zeros(len(ends_ns) - 1, np.int64)
    step = np.searchsorted(ends_ns[1:], ended_ns, side="left")
    there = step < len(found)
    np.add.at(found, step[there], values[there])
    return found


def log_table(ends_ns: Ints, before: Mapping[int, Sequence[str]]) -> pd.DataFrame:
    """Return what rank 0 prints of the pace, and what ranks said `before`, by rank."""
    lines = [(rank, 0, "INFO", text) for rank, texts in before.items() for text in texts]
    for end in range(LOG_EVERY, len(ends_ns), LOG_EVERY):
        mean_ms = int(ends_ns[end] - ends_ns[end - LOG_EVERY]) / LOG_EVERY / 1e6
        message = f"step {end}: {mean_ms:.1f} ms/step"
        lines.append((0, int(ends_ns[end] - ends_ns[0]), "INFO", message))
    return pd.DataFrame(lines, columns=["rank", "time_ns", "level", "message"])
