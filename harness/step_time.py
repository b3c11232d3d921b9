"""How long a step of a recording took on average: the plainest measure of being slow."""

from __future__ import annotations

import numpy as np

from cases.case import Case, Recording


def mean_step_ns(run: Recording) -> float | None:
    """Mean duration of a step over all ranks, else of a generated token, in ns.

    A row that averages several steps counts as often as it has steps. Step 0 is left out:
    what a job pays once, to start, makes no step slow. A server's step is a fixed number of
    tokens; where only its engines' own steps are there, which hold more or less work, wall time
    over tokens stands in. None where no step was timed.
    """
    frame = run.steps
    timed = frame[frame["duration_ns"].notna() & (frame["step"] > 0)]
    if not len(timed):
        return token_ns(run)
    weights = np.asarray(timed["span"].fillna(1), dtype=float)
    return float(np.average(timed["duration_ns"].to_numpy(dtype=float), weights=weights))


def token_ns(run: Recording) -> float | None:
    """Wall time of all engines over the tokens by which they continued answers, in ns.

    Drafted tokens count if they were accepted. None where no engine generated any.
    """
    steps = run.engine[run.engine["duration_ns"].notna()]
    own = steps[["decode_tokens", "draft_tokens", "accepted_tokens"]].fillna(0).sum()
    tokens = int(own["decode_tokens"] - own["draft_tokens"] + own["accepted_tokens"])
    if tokens < 1:
        return None
    ends = steps["start_ns"] + steps["duration_ns"]
    return float(ends.max() - steps["start_ns"].min()) / tokens


def slowdown(case: Case) -> float | None:
    """Mean step time over that of the reference run, None where either is unknown."""
    mine = mean_step_ns(case)
    reference = mean_step_ns(case.reference) if case.reference else None
    return mine / reference if mine and reference else None
