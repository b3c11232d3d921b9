"""When: how well the stretches of time that were named fit the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cases.schema import Window


def overlap(found: Sequence[Window], true: Sequence[Window]) -> float:
    """Return the intersection over the union of two sets of windows, 0 if either is empty.

    >>> true = [Window(start_ns=1, end_ns=3)]
    >>> overlap([Window(start_ns=2, end_ns=4)], true)
    0.3333333333333333
    """
    edges = sorted({edge for w in (*found, *true) for edge in (w.start_ns, w.end_ns)})
    both = either = 0
    for start, end in pairwise(edges):
        in_found, in_true = _inside(start, found), _inside(start, true)
        both += (end - start) * (in_found and in_true)
        either += (end - start) * (in_found or in_true)
    return both / either if either else 0.0


def onset_error(
    found: Sequence[Window], true: Sequence[Window], duration_ns: int | None
) -> float | None:
    """Return how far the named onset is from the true one, as a share of the run.

    The onset is the start of the first window. None named is an error of 1, the greatest there
    can be; in a run of unknown length there is no error to tell (None).

    >>> true = [Window(start_ns=1, end_ns=3)]
    >>> onset_error([Window(start_ns=2, end_ns=4)], true, duration_ns=4)
    0.25
    """
    if duration_ns is None or duration_ns <= 0:
        return None
    if not found:
        return 1.0
    apart = min(w.start_ns for w in found) - min(w.start_ns for w in true)
    return min(1.0, abs(apart) / duration_ns)


def _inside(time_ns: int, windows: Sequence[Window]) -> bool:
    return any(w.start_ns <= time_ns < w.end_ns for w in windows)
