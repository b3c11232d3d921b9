"""How much counters grew between two samples: never negative, None where that can't be known.

Threads are counted each for itself, since what an ended one had counted is gone from /proc.
"""

from __future__ import annotations

from collections.abc import Mapping

from injectors.recorder.procfs import IO_COUNTERS, THREAD_COUNTERS, ProcessCounters

NEW_THREAD = dict.fromkeys(THREAD_COUNTERS, 0)
NEW_PROCESS = ProcessCounters({}, dict.fromkeys(IO_COUNTERS, 0))


def growth(now: int | None, before: int | None) -> int | None:
    """Return how much one counter grew; None where it was not read or went backwards.

    >>> growth(7, 5), growth(5, 7), growth(None, 5)
    (2, None, None)
    """
    return None if now is None or before is None or now < before else now - before


def growths(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int | None]:
    """Return how much each counter of either sample grew."""
    return {name: growth(now.get(name), before.get(name)) for name in {**now, **before}}


def process_growth(now: ProcessCounters, before: ProcessCounters | None) -> dict[str, int | None]:
    """Return how much a process's counters grew, all of them when it is new (`before` is None).

    A thread of both samples adds its difference, a new one its whole counter, and one that has
    ended nothing: what it did since the sample before is lost.

    >>> first = ProcessCounters({"1": {"cpu_ns": 5}, "2": {"cpu_ns": 90}}, {})
    >>> second = ProcessCounters({"1": {"cpu_ns": 7}, "3": {"cpu_ns": 4}}, {})
    >>> process_growth(second, first)["cpu_ns"]
    6
    """
    known = before or NEW_PROCESS
    in_threads = {name: _over_threads(name, now.threads, known.threads) for name in THREAD_COUNTERS}
    in_all = {name: growth(now.io.get(name), known.io.get(name)) for name in IO_COUNTERS}
    return in_threads | in_all


def _over_threads(
    name: str, now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]
) -> int | None:
    total = None
    for thread, counters in now.items():
        if name not in counters:  # it ended while it was read
            continue
        grown = growth(counters[name], before.get(thread, NEW_THREAD).get(name))
        if grown is None:
            return None
        total = grown + (total or 0)
    return total
