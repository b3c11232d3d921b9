"""Which events' times can't be true: each rule, and the events that break it.

The rules judge an event by the others, because a trace has no clock of its own to ask.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases.kineto.columns import Flags, Floats

NEGATIVE = "negative duration"
UNCOUNTABLE = "time beyond 2**53 us"
FAR = "start more than a day from the others"
ENORMOUS = "duration far beyond the recording's end"

MAX_US = 2.0**53
"""Above this a float64 no longer tells whole microseconds apart (the year 2255)."""
FLOAT_EXACT_US = 2.0**43
"""Below this (101 days) a float64 holds three decimals of a microsecond."""
DAY_US = 86_400e6
MARKED_SLACK_US = 1e6
UNMARKED_SLACK_US = 60e6


def impossible(start_us: Floats, duration_us: Floats, marked: bool) -> Iterator[tuple[str, Flags]]:
    """Yield (reason, flags) per rule; an event is flagged by the first rule it breaks.

    1. A duration must not be negative.
    2. Start and duration must be below 2**53 us.
    3. A start must lie within a day of the median start.
    4. An end must not lie after the last start by more than the whole stretch of starts, or
       1 s if that is longer (60 s where the recording's end is not `marked`).
    """
    bad = duration_us < 0
    yield NEGATIVE, bad
    uncountable = ~bad & ((np.abs(start_us) >= MAX_US) | (duration_us >= MAX_US))
    yield UNCOUNTABLE, uncountable
    bad |= uncountable
    if bad.all():
        return
    far = ~bad & (np.abs(start_us - np.median(start_us[~bad])) > DAY_US)
    yield FAR, far
    bad |= far
    starts = start_us[~bad]
    if not len(starts):
        return
    slack = max(np.ptp(starts), MARKED_SLACK_US if marked else UNMARKED_SLACK_US)
    yield ENORMOUS, ~bad & (start_us + duration_us > starts.max() + slack)
