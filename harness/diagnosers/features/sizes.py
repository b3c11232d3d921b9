"""Whether the first pass of a new input size is longer than later ones of that size."""

from __future__ import annotations

import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import column, rank_of


def first_over_repeat(run: Recording) -> float:
    """Mean forward pass of a size's first step over that of its later ones; NaN without any.

    Over sizes that come again on a rank, step 0 left out.
    """
    events = run.runtime[run.runtime["event"] == "input_size"]
    steps = run.steps[run.steps["step"] > 0]
    events = events[events["time_ns"].notna()]
    steps = steps[steps["start_ns"].notna()]
    if not len(events) or not len(steps):
        return float("nan")
    timed = pd.DataFrame(
        {
            "time": column(steps, "start_ns"),
            "rank": rank_of(steps),
            "forward": column(steps, "forward_ns"),
        }
    ).sort_values("time")
    sized = pd.DataFrame(
        {
            "time": column(events, "time_ns"),
            "rank": rank_of(events),
            "size": column(events, "value"),
        }
    ).sort_values("time")
    joined = pd.merge_asof(sized, timed, on="time", by="rank").dropna()
    groups = joined.groupby(["rank", "size"])["forward"]
    first, count, total = groups.first(), groups.size(), groups.sum()
    again = count > 1
    if not again.any():
        return float("nan")
    later = (total[again] - first[again]) / (count[again] - 1)
    return float(first[again].sum() / later.sum())
