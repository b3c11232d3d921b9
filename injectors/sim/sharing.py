"""A link that flows share fairly, as a fluid: max-min rates that change when flows come and go.

Every flow gets as much as every other, but for those that want less, whose rest the others share
(Bertsekas and Gallager, Data Networks, 6.5). Between two events rates are constant, so what has
been moved is exact: it is counted in bytes * 10**9 (bytes/s times ns), in whole numbers.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass

from injectors.sim.job import ONE

SECOND_NS = 10**9


@dataclass(frozen=True)
class Flow:
    """Traffic that comes at `begin_ns`.

    Attributes:
        name: Its own; of flows that are treated alike the first by name gets what can't be split.
        begin_ns: When it comes.
        end_ns: When it goes, None: when it is done, or never.
        bytes: After which it is done, None: it always has more.
        most_bytes_per_s: What it wants at most, None: everything.
    """

    name: str
    begin_ns: int
    end_ns: int | None = None
    bytes: int | None = None
    most_bytes_per_s: int | None = None


def fair_rates(capacity: int, wanted: dict[str, int | None]) -> dict[str, int]:
    """Share `capacity` bytes/s out to flows that want so much each (None: everything).

    >>> fair_rates(10, {"a": 2, "b": None, "c": 5})
    {'a': 2, 'b': 4, 'c': 4}
    """
    rates, left = {}, capacity
    modest = sorted(wanted, key=lambda name: _first_modest(wanted[name], name, capacity))
    for number, name in enumerate(modest):
        even = -(-left // (len(modest) - number))
        want = wanted[name]
        rates[name] = even if want is None else min(even, want)
        left -= rates[name]
    return {name: rates[name] for name in wanted}


def _first_modest(want: int | None, name: str, capacity: int) -> tuple[int, str]:
    return (capacity if want is None else min(want, capacity), name)


class FairLink:
    """One link on its way through time; flows may be added as long as they have not begun.

    Args:
        bytes_per_s: What the link carries.
    """

    def __init__(self, bytes_per_s: int) -> None:
        if bytes_per_s < 1:
            raise ValueError(f"a link must carry at least 1 byte/s, got {bytes_per_s}")
        self.bytes_per_s, self.now_ns = bytes_per_s, 0
        self._events: list[tuple[int, str, bool]] = []  # when, flow, whether it comes
        self._flows: dict[str, Flow] = {}
        self._rates: dict[str, int] = {}
        self._moved: dict[str, int] = {}  # bytes * 10**9
        self._done: dict[str, int] = {}
        self._history: dict[str, tuple[list[int], list[int], list[int]]] = {}

    def add(self, flow: Flow) -> None:
        """Let a flow come; it must have a new name and lie in the future."""
        if flow.name in self._flows:
            raise ValueError(f"names of flows must be unique, got {flow.name!r} again")
        if flow.begin_ns < self.now_ns:
            raise ValueError(f"a flow must begin from {self.now_ns} on, got {flow.begin_ns}")
        if flow.end_ns is not None and flow.end_ns <= flow.begin_ns:
            raise ValueError(f"a flow must end after {flow.begin_ns}, got {flow.end_ns}")
        self._flows[flow.name], self._moved[flow.name] = flow, 0
        self._history[flow.name] = ([], [], [])
        heapq.heappush(self._events, (flow.begin_ns, flow.name, True))
        if flow.end_ns is not None:
            heapq.heappush(self._events, (flow.end_ns, flow.name, False))

    def run(self, until_ns: int) -> None:
        """Move on to `until_ns`, what happens then included."""
        while True:
            done_ns, done = min(
                ((self._finishes(name), name) for name in self._rates), default=(None, "")
            )
            event_ns = self._events[0][0] if self._events else None
            times = [ns for ns in (done_ns, event_ns) if ns is not None and ns <= until_ns]
            if not times:
                break
            self._move(min(times))
            if done_ns == self.now_ns:
                self._leave(done)
            else:
                self._happen(*heapq.heappop(self._events)[1:])
            self._share()
        self._move(max(until_ns, self.now_ns))

    def rate(self, name: str) -> int:
        """Bytes/s that a flow has now."""
        return self._rates.get(name, 0)

    def finished_ns(self, name: str) -> int | None:
        """When a flow was done or went, None if it hasn't yet."""
        return self._done.get(name)

    def moved_bytes(self, name: str) -> int:
        """Bytes that a flow has moved, rounded down."""
        return self._moved[name] // SECOND_NS

    def share_q16(self, name: str, begin_ns: int, end_ns: int) -> int:
        """Share of the link that a flow had between two times, of which the later has come."""
        if not 0 <= begin_ns < end_ns <= self.now_ns:
            raise ValueError(f"must be times up to {self.now_ns}, got {begin_ns} to {end_ns}")
        moved = self._moved_by(name, end_ns) - self._moved_by(name, begin_ns)
        return moved * ONE // (self.bytes_per_s * (end_ns - begin_ns))

    def _moved_by(self, name: str, time_ns: int) -> int:
        times, rates, moved = self._history[name]
        last = bisect_right(times, time_ns) - 1
        return moved[last] + rates[last] * (time_ns - times[last]) if last >= 0 else 0

    def _finishes(self, name: str) -> int | None:
        """When a flow is done at its present rate (rounded up), never for one without end."""
        volume, rate = self._flows[name].bytes, self._rates[name]
        if volume is None or rate == 0:
            return NEVER_NS
        return self.now_ns - (self._moved[name] - volume * SECOND_NS) // rate

    def _move(self, time_ns: int) -> None:
        for name, rate in self._rates.items():
            moved = self._moved[name] + rate * (time_ns - self.now_ns)
            volume = self._flows[name].bytes
            self._moved[name] = moved if volume is None else min(moved, volume * SECOND_NS)
        self.now_ns = time_ns

    def _happen(self, name: str, comes: bool) -> None:
        if comes:
            self._rates[name] = 0
        elif name in self._rates:
            self._leave(name)

    def _leave(self, name: str) -> None:
        del self._rates[name]
        self._done[name] = self.now_ns
        self._note(name, 0)

    def _share(self) -> None:
        wanted = {name: self._flows[name].most_bytes_per_s for name in self._rates}
        for name, rate in fair_rates(self.bytes_per_s, wanted).items():
            self._rates[name] = rate
            self._note(name, rate)

    def _note(self, name: str, rate: int) -> None:
        times, rates, moved = self._history[name]
        if times and times[-1] == self.now_ns:
            rates[-1] = rate
        else:
            times.append(self.now_ns)
            rates.append(rate)
            moved.append(self._moved[name])


NEVER_NS = 2**62
