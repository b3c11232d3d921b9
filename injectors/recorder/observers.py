"""What a rank's runtime reports about itself while a window is recorded."""

from __future__ import annotations

import gc
import time
from typing import Any

from injectors.recorder.compilation import CompileWatch


class RuntimeLog:
    """Garbage collections, recompilations and allocator retries, as the runtime reports them."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._rows: list[dict[str, Any]] | None = None
        self._start_ns = self._gc_began_ns = self._retries = 0
        self._compilations = CompileWatch(self._add)

    def start(self, start_ns: int) -> None:
        """Begin to keep rows, times counted from `start_ns` (monotonic)."""
        self._rows, self._start_ns, self._retries = [], start_ns, allocator_retries()
        gc.callbacks.append(self._collected)
        self._compilations.start()

    def stop(self) -> list[dict[str, Any]]:
        """Return the rows and stop keeping them."""
        gc.callbacks.remove(self._collected)
        self._compilations.stop()
        rows, self._rows = self._rows or [], None
        return rows

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = time.monotonic_ns()
        if phase == "start":
            self._gc_began_ns = now
        elif self._gc_began_ns:
            self._add("gc", self._gc_began_ns, now - self._gc_began_ns, info["generation"])

    def check(self) -> None:
        """Note what happened since the last call: retries, functions left to the eager path.

        Called after each step, so that what is told of earlier times falls within the window.
        """
        self._compilations.tell_given_up()
        retries = allocator_retries()
        if retries != self._retries:
            self._add("allocator_retry", time.monotonic_ns(), None, retries - self._retries)
            self._retries = retries

    def _add(
        self, event: str, at_ns: int, duration_ns: int | None, value: float, detail: str = ""
    ) -> None:
        if self._rows is not None:
            self._rows.append(
                {
                    "rank": self._rank,
                    "time_ns": at_ns - self._start_ns,
                    "event": event,
                    "duration_ns": duration_ns,
                    "value": float(value),
                    "detail": detail,
                }
            )


def allocator_retries() -> int:
    """Return how often this process's CUDA allocator had to free its cache and ask again."""
    import torch

    if not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.memory_stats().get("num_alloc_retries", 0))
