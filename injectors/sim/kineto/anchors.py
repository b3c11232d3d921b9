"""When the segments of every op begin and how long they are, as the rank's clocks show it.

The host's clock is a little off and drifts (injectors.sim.clocks). The device's is converted to it
by the profiler with an error that wanders by some us, so that kernels may seem to begin before
their launch, and counts in ticks of 32 ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.noise import Ints, Keys
from injectors.sim.program import Kind, Op, StepTimes

TICK_NS = 32
WANDER_NS = 900  # deviation of the conversion's error from its mean at the ends of a step
ERROR_NS = 800  # deviation of its mean between ranks
TAIL_NS, TAIL_MORE_NS = 300, 700
BEND_BITS, TAIL_BITS, LOST_BITS = 48, 32, 16  # which of a key's 64 bits decide what
COMMUNICATION = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
CALL_SHARE = 5  # of 8 of an op's time are before its call, where the engine tells no call apart
BEND_Q16 = 26214  # how far the middle of an op's host time shifts at most


@dataclass(frozen=True, eq=False)
class Anchors:
    """Segments of all ops of one rank and step.

    Attributes:
        keys: (ops,), of the noise.
        low: (segments * ops,), ns.
        span: (segments * ops,), ns.
        bend: (ops,), Q16: how uneven the host's time is divided.
    """

    keys: Keys
    low: Ints
    span: Ints
    bend: Ints


def field(keys: Keys, shift: int) -> Ints:
    """Return 16 bits of each key: 0 to 65535, each as likely."""
    return (keys >> np.uint64(shift)).astype(np.int64) & 0xFFFF


_hashed = lru_cache(maxsize=100_000)(noise.text_hash)


class Timing:
    """What is known of a program's ops before they run.

    Attributes:
        paths: (ops,), hashes of their paths.
    """

    def __init__(self, ops: Sequence[Op], seed: int, on_gpu: bool) -> None:
        self._seed, self._on_gpu = seed, on_gpu
        self._key = noise.key(seed, "trace")
        self._error_ns = cache(self._new_error_ns)
        self.paths = np.array([_hashed(op.path) for op in ops], np.uint64).view(np.int64)
        self._done = _done_with(ops)
        self._tail = np.array([4 if op.kind in COMMUNICATION else 1 for op in ops], np.int64)
        calls = (Kind.HOST, Kind.WAIT_STREAM)
        self._splits = np.array([op.kind in calls for op in ops], np.bool_)

    def keys(self, rank: int, step: int) -> Keys:
        """Return the keys of all ops of a rank and step."""
        return noise.extend(noise.key(self._key, rank, step), self.paths)

    def anchors(
        self, times: StepTimes, column: int, clocks: Clocks, rank: int, step: int
    ) -> Anchors:
        """Place the segments of a rank (the `column`-th that was kept) and step."""
        keys = self.keys(rank, step)
        host, call = times.host[:, column], times.call[:, column]
        done = np.maximum(times.done[:, column], times.done[self._done, column])
        tail = TAIL_NS + (field(keys, TAIL_BITS) * TAIL_MORE_NS >> 16)
        returns = done - np.minimum(tail * self._tail, (done - host) >> 3)
        call = np.where(call < 0, returns, np.minimum(call, returns))
        halfway = host + (returns - host) * CALL_SHARE // 8
        call = np.where(self._splits, halfway, call)
        read = np.stack([host, call, returns, done, times.start[:, column], times.end[:, column]])
        shown = clocks.of_hosts(read, clocks.host[rank])
        if self._on_gpu:
            shown[4:] = self._device(shown, rank, step)
        low = shown[[0, 1, 2, 4]]
        span = shown[[1, 2, 3, 5]] - low
        bend = (field(keys, BEND_BITS) - 32768) * (2 * BEND_Q16) >> 16
        return Anchors(keys, np.maximum(low.ravel(), 0), span.ravel(), bend)

    def _device(self, shown: Ints, rank: int, step: int) -> Ints:
        """Convert starts and ends as the profiler does: with a wandering error, in ticks."""
        there = shown[0] >= 0
        begin, end = int(shown[0][there].min()), int(shown[3].max())
        first, last = (self._error_ns(rank, number) for number in (step, step + 1))
        along = np.clip(shown[4:] - begin, 0, end - begin)
        wrong = first + (last - first) * along // max(end - begin, 1)
        return np.asarray((shown[4:] + wrong) // TICK_NS * TICK_NS)

    def _new_error_ns(self, rank: int, step: int) -> int:
        constant = noise.key(self._seed, "device clock", rank)
        drawn = np.array([constant, noise.key(constant, step)], np.uint64)
        return int(noise.normal_q16(drawn, np.array([ERROR_NS, WANDER_NS])).sum())


def _done_with(ops: Sequence[Op]) -> NDArray[np.int64]:
    """Number the op with which each one is done: a launch that blocks, with the wait after it."""
    found = np.arange(len(ops))
    last: dict[int, int] = {}
    for index, op in enumerate(ops):
        before = last.get(int(op.thread))
        blocking = op.kind == Kind.SYNC and op.label.runtime is None
        if blocking and before is not None and ops[before].kind == Kind.KERNEL:
            found[before] = index
        last[int(op.thread)] = index
    return found


def at(points: Ints, anchors: Anchors) -> Ints:
    """Return when points are, ns; see `Sources.points`."""
    segment, share, op, nudge = points
    place = segment * len(anchors.bend) + op
    uneven = share * (65536 - share) >> 16
    moved = share + (anchors.bend[op] * uneven >> 16)
    moments = anchors.low[place] + (anchors.span[place] * moved >> 16) + nudge
    return np.asarray(np.maximum(moments, 0))
