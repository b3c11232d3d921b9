"""Doing the same to every case of a suite, of a large one to several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

LEAST_FOR_PROCESSES = 40
Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield `function(item)` in order; both can be sent to another process."""
    cores = os.cpu_count() or 1
    if len(items) < LEAST_FOR_PROCESSES or cores == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, items, chunksize=4)
