"""When: how well the stretches of time that were named overlap the true ones."""

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


def _inside(time_ns: int, windows: Sequence[Window]) -> bool:
    return any(w.start_ns <= time_ns < w.end_ns for w in windows)
