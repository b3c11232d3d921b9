"""Processes that do the same to many items, in any order, and end with the one that asked."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from cases.errors import HarnessError
from injectors.hogs import PR_SET_PDEATHSIG

RARELY = (200_000, 20, 20)  # looks for cycles less often than CPython does by itself

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(AbstractContextManager["Workers"]):
    """So many processes, started when they are first needed; 1 does everything here.

    Args:
        count: Processes; None: one a core.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count or os.cpu_count() or 1
        self._started = False

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield `function(item)` of every item as they come; both can be sent to a process.

        Raises:
            HarnessError: A process was killed.
        """
        if self._count == 1 or len(items) < 2:
            yield from map(function, items)
            return
        futures: list[Future[Result]] = [self._pool.submit(function, item) for item in items]
        while futures:
            # A result is forgotten once it was given: there may be many.
            done = next(as_completed(futures))
            futures.remove(done)
            try:
                yield done.result()
            except BrokenProcessPool:
                raise HarnessError("must keep its processes, but one was killed") from None

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        self._started = True
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._count, context, initializer=_begin)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes; what waits is dropped if something went wrong."""
        if self._started:
            self._pool.shutdown(wait=True, cancel_futures=error is not None)


def _begin() -> None:
    """Begin a process that makes many objects, few of them in cycles, and ends with its parent."""
    gc.set_threshold(*RARELY)
    _end_with_parent()


def _end_with_parent() -> None:
    """Be killed when the parent dies, also if it died before this was called."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)
