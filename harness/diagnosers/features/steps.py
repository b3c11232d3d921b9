"""Metrics of steps: where a rank's time goes, as the job times it itself."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import floats, rank_of

PARTS = ("data_wait", "forward", "backward", "optimizer", "checkpoint")
SPIKES = {"spike": "duration", "forward_spike": "forward", "gap_spike": "gap"}
USUAL = 0.4  # quantile that is taken for a step in which nothing happened


def step_metrics(run: Recording) -> pd.DataFrame:
    """Return one row a rank; times are nanoseconds in a step. Step 0 is left out."""
    frame = run.steps[run.steps["step"] > 0]
    named = [f"{part}_ns" for part in ("duration", *PARTS)]
    values = floats(frame, [*named, "tokens"])
    values.columns = pd.Index(["duration", *PARTS, "tokens"])
    values["gap"] = values["duration"] - values[list(PARTS)].fillna(0).sum(axis=1)
    groups = values.groupby(rank_of(frame))
    means = groups.mean()
    usual = groups[list(SPIKES.values())].quantile(USUAL)
    for name, of in SPIKES.items():
        means[name] = means[of] - usual[of]
    return means


def step_count(run: Recording) -> int:
    """How many steps were recorded (the spans of a rank's rows together)."""
    if not len(run.steps):
        return 0
    first = run.steps[run.steps["rank"] == run.steps["rank"].min()]
    return int(np.nan_to_num(floats(first, ["span"])["span"].to_numpy(), nan=1.0).sum())


def mean_step_ns(run: Recording) -> float:
    """Mean duration of a step over all ranks, NaN where none was timed."""
    frame = run.steps[run.steps["step"] > 0]
    values = floats(frame, ["duration_ns", "span"])
    values["span"] = values["span"].fillna(1)
    values = values[values["duration_ns"].notna()]
    total = float(values["span"].sum())
    return float((values["duration_ns"] * values["span"]).sum()) / total if total else float("nan")
