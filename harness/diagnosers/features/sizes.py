"""Whether the first pass of a new input size is longer than later ones of that size."""

from __future__ import annotations

import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import floats_of, ints_of, rows_with
from harness.diagnosers.features.steps import later_steps


def first_over_repeat(run: Recording) -> float:
    """Mean forward pass of a size's first step over that of its later ones; NaN without any.

    Over sizes that come again on a rank, step 0 left out.
    """
    events, steps = rows_with(run.arrow("runtime"), "event", "input_size"), later_steps(run)
    events = events.filter(events["time_ns"].is_valid())
    steps = steps.filter(steps["start_ns"].is_valid())
    if not len(events) or not len(steps):
        return float("nan")
    timed = pd.DataFrame(
        {
            "time": floats_of(steps, "start_ns"),
            "rank": ints_of(steps, "rank"),
            "forward": floats_of(steps, "forward_ns"),
        }
    ).sort_values("time")
    sized = pd.DataFrame(
        {
            "time": floats_of(events, "time_ns"),
            "rank": ints_of(events, "rank"),
            "size": floats_of(events, "value"),
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
