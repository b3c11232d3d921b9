"""One measured figure beside the limit it is held to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A number that must not exceed its limit.

    Ratios are preferred to seconds: both sides slow down together on a busy machine.

    >>> Figure("reading / json.loads", 0.3, 0.4).met
    True
    """

    name: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the value is within the limit."""
        return self.value <= self.limit


def median_ratio(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 7
) -> float:
    """Median over interleaved rounds of the time of `ours` over that of `theirs`."""
    ours(), theirs()  # the first runs pay for imports and caches
    return statistics.median(seconds(ours) / seconds(theirs) for _ in range(rounds))


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
