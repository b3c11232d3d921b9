"""How long a step of a recording took on average: the plainest measure of being slow."""

from __future__ import annotations

import numpy as np

from cases.case import Case, Recording


def mean_step_ns(run: Recording) -> float | None:
    """Mean duration of a training step over all ranks, else of an engine step, in ns.

    A row that averages several steps counts as often as it has steps. Step 0 is left out:
    what a job pays once, to start, makes no step slow. None where no step was timed.
    """
    for name in ("steps", "engine"):
        frame = run.steps if name == "steps" else run.engine
        timed = frame[frame["duration_ns"].notna() & (frame["step"] > 0)]
        if len(timed):
            weights = timed["span"].fillna(1) if "span" in timed else np.ones(len(timed))
            values = timed["duration_ns"].to_numpy(dtype=float)
            return float(np.average(values, weights=np.asarray(weights, dtype=float)))
    return None


def slowdown(case: Case) -> float | None:
    """Mean step time over that of the reference run, None where either is unknown."""
    mine = mean_step_ns(case)
    reference = mean_step_ns(case.reference) if case.reference else None
    return mine / reference if mine and reference else None
