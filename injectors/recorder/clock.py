"""Marks in time: the host's clock, or events on a device that are read once it is done.

A mark is taken without waiting. On a device that works behind the host it is an event, which
`read` turns into the host's nanoseconds; a host mark is those nanoseconds already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Protocol

Mark = Any  # int of the host, or a device's event
NS_PER_MS = 1_000_000


class Clock(Protocol):
    """Takes marks and reads them."""

    def mark(self) -> Mark:
        """Mark the end of what was asked for so far."""

    def read(self, mark: Mark) -> int:
        """Return a mark's time in ns (monotonic); what came before it must be done."""

    def anchor(self) -> None:
        """Tie the clock to the host's, while nothing is running."""


class HostClock:
    """Marks are the host's monotonic ns."""

    def mark(self) -> int:
        """Return the time."""
        return time.monotonic_ns()

    def read(self, mark: int) -> int:
        """Return the mark itself."""
        return mark

    def anchor(self) -> None:
        """Do nothing: this is the host's clock."""


class DeviceClock:
    """Marks are timing events on the stream that is current where they are taken.

    An event's time is counted from an anchor, whose host time is known because the device was
    idle. CUDA tells times between events as float32 ms, so 60 s after the anchor a mark is
    good to 4 µs.

    Args:
        event: Makes an event with `record`, `synchronize` and `elapsed_time(other)` in ms.
        host: The host's clock, ns.
    """

    def __init__(
        self, event: Callable[[], Any], host: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._event, self._host = event, host
        self.anchor()

    def mark(self) -> Any:
        """Record an event."""
        event = self._event()
        event.record()
        return event

    def read(self, mark: Mark) -> int:
        """Return when the event took place; a host's mark stays as it is."""
        if isinstance(mark, int):
            return mark
        mark.synchronize()
        since_ns: int = round(self._anchor.elapsed_time(mark) * NS_PER_MS)
        return self._anchor_ns + since_ns

    def anchor(self) -> None:
        """Record an event at a known time; earlier marks can't be read any more."""
        self._anchor = self.mark()
        self._anchor.synchronize()
        self._anchor_ns = self._host()


def clock_of(device: Any) -> Clock:
    """Return the clock of a torch device, which must be the current one of its kind."""
    if device.type != "cuda":
        return HostClock()
    import torch

    return DeviceClock(lambda: torch.cuda.Event(enable_timing=True))


class Laps(Mapping[str, int]):
    """Time between consecutive marks, summed by the name of what ended at each, in ns.

    Values are read when they are looked up, not before, so that a device is not waited for.

    >>> laps = Laps(HostClock())
    >>> laps.end("forward_ns"); laps.end("backward_ns"); laps.end("forward_ns")
    >>> list(laps)
    ['forward_ns', 'backward_ns']
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.start: Mark = clock.mark()
        self._ends: list[tuple[str, Mark]] = []

    def end(self, name: str) -> None:
        """Count the time since the last mark towards `name`."""
        self._ends.append((name, self._clock.mark()))

    def __getitem__(self, name: str) -> int:
        if name not in dict(self._ends):
            raise KeyError(name)
        marks = (self.start, *(mark for _, mark in self._ends))
        spans = pairwise(map(self._clock.read, marks))
        ended = zip(self._ends, spans, strict=True)
        return sum(after - before for (own, _), (before, after) in ended if own == name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._ends))

    def __len__(self) -> int:
        return len(dict(self._ends))
