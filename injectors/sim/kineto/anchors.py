"""When the segments of every op begin and how long they are, as the rank's clocks show it.

The host's clock is a little off and drifts (injectors.sim.clocks). The device's is converted to it
by the profiler with an error that wanders by some us, so that kernels may seem to begin before
their launch, and counts in ticks of 32 ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.noise import Ints, Keys
from injectors.sim.program import Kind, Op, StepTimes

TICK_NS = 32
LATE_NS = 2**62  # later than anything
WANDER_NS = 1_000  # deviation of the conversion's error from its mean at the ends of a step
ERROR_NS = 2_500  # deviation of its mean between ranks
TAIL_NS, TAIL_MORE_NS = 300, 700
BEND_BITS, TAIL_BITS, LOST_BITS = 48, 32, 16  # which of a key's 64 bits decide what
COMMUNICATION = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
CALL_SHARE = 5  # of 8 of an op's time are before its call, where the engine tells no call apart
BEND_Q16 = 26214  # how far the middle of an op's host time shifts at most


@dataclass(frozen=True, eq=False)
class Anchors:
    """Segments of all ops of one rank, in some of its steps.

    Attributes:
        keys: (steps, ops), of the noise.
        low: (steps, segments * ops), ns.
        span: (steps, segments * ops), ns.
        bend: (steps, ops), Q16: how uneven the host's time is divided.
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
        self.paths = np.array([_hashed(op.path) for op in ops], np.uint64).view(np.int64)
        self._done = _done_with(ops)
        self._tail = np.array([4 if op.kind in COMMUNICATION else 1 for op in ops], np.int64)
        calls = (Kind.HOST, Kind.WAIT_STREAM)
        self._splits = np.array([op.kind in calls for op in ops], np.bool_)

    def anchors(
        self, kept: Mapping[int, StepTimes], column: int, clocks: Clocks, rank: int
    ) -> Anchors:
        """Place the segments of a rank, the `column`-th that was kept, in some steps."""
        numbers = np.array(list(kept), np.int64)
        keys = noise.extend(noise.keys(self._key, rank, numbers)[:, None], self.paths)
        host, call, done, start, end = (
            np.stack([getattr(times, name)[:, column] for times in kept.values()])
            for name in ("host", "call", "done", "start", "end")
        )
        done = np.maximum(done, done[:, self._done])
        tail = (TAIL_NS + (field(keys, TAIL_BITS) * TAIL_MORE_NS >> 16)) * self._tail
        returns = done - np.minimum(tail, (done - host) >> 3)
        halfway = host + (returns - host) * CALL_SHARE // 8
        called = np.where(self._splits, halfway, np.minimum(call, returns))
        called = np.where(call < 0, returns, called)
        window = np.where(host < 0, LATE_NS, host).min(axis=1), done.max(axis=1)
        shown = clocks.of_hosts(
            np.stack([host, called, returns, done, start, end]), clocks.host[rank]
        )
        if self._on_gpu:
            ends = clocks.of_hosts(np.stack(window), clocks.host[rank])
            shown[4:] = self._device(shown[4:], ends, rank, numbers)
        low = shown[[0, 1, 2, 4]]
        span = shown[[1, 2, 3, 5]] - low
        bend = (field(keys, BEND_BITS) - 32768) * (2 * BEND_Q16) >> 16
        return Anchors(keys, _by_step(np.maximum(low, 0)), _by_step(span), bend)

    def _device(self, shown: Ints, window: Ints, rank: int, numbers: Ints) -> Ints:
        """Convert starts and ends as the profiler does: with a wandering error, in ticks."""
        begin, end = window[:, :, None]
        first, last = (self._errors_ns(rank, numbers + later)[:, None] for later in (0, 1))
        whole = np.maximum(end - begin, 1)
        wrong = first + (last - first) * np.clip(shown - begin, 0, whole) // whole
        return np.asarray((shown + wrong) // TICK_NS * TICK_NS)

    def _errors_ns(self, rank: int, numbers: Ints) -> Ints:
        """Errors of the conversion where steps begin."""
        constant = noise.keys(self._seed, "device clock", np.array([rank]))
        wander = noise.normal_q16(noise.extend(constant, numbers), WANDER_NS)
        return noise.normal_q16(constant, ERROR_NS) + wander


def _by_step(segments: Ints) -> Ints:
    """Turn (segments, steps, ops) into (steps, segments * ops)."""
    return np.ascontiguousarray(segments.transpose(1, 0, 2)).reshape(segments.shape[1], -1)


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
    """Return when points are in each step, (steps, points) in ns; see `Sources.points`."""
    segment, share, op, nudge = points
    place = segment * anchors.bend.shape[1] + op
    uneven = share * (65536 - share) >> 16
    moved = share + (np.take(anchors.bend, op, axis=1) * uneven >> 16)
    spent = np.take(anchors.span, place, axis=1) * moved >> 16
    moments = np.take(anchors.low, place, axis=1) + spent + nudge
    return np.asarray(np.maximum(moments, 0))
