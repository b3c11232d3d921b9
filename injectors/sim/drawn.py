"""Noise and durations of all ops of a step, drawn at once with numpy.

A key's bits, from the top: 11 for the device's factor, 11 for host time, 11 for the launch call,
11 for the skew of a collective's end, 10 for latency, 10 for the gap. Losing the core is drawn
from the key extended by 1: two 16-bit fields, whether and how long, for the host's own time, and
two for what an INLINE op computes.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from injectors.sim.compiled import Compiled, OpArrays
from injectors.sim.noise import Keys, extend
from injectors.sim.noise_classes import Spread
from injectors.sim.program import Ints, Kind
from injectors.sim.state import Given

QUANTUM_NS = 4_000_000  # an INLINE op may lose its core once in each
CHUNK = 16_384  # tasks drawn at once; their arrays stay in the cache


Column = TypeVar("Column")


class Drawn(NamedTuple, Generic[Column]):
    """Times in ns of each op on each of its ranks.

    Attributes:
        host: Of the thread before a call, losses of the core included.
        launch: Of the launch call.
        latency: From the call to the start on an idle stream.
        gap: After the stream's last op.
        device: Of the device's own work.
        factor_q16: Of that, or of a transfer.
        skew: Of a collective's end.
    """

    host: Column
    launch: Column
    latency: Column
    gap: Column
    device: Column
    factor_q16: Column
    skew: Column


class Draws:
    """Draws a step's noise; ops are taken together by the ranks that do them."""

    def __init__(self, compiled: Compiled, spread: Spread) -> None:
        self._ops, self._spread = compiled.arrays, spread
        size = len(compiled.members)
        self.drawn: Drawn[list[Ints]] = Drawn(*([_NOTHING] * size for _ in Drawn._fields))
        self._blocks = [_Block(self._ops, chunk) for chunk in _chunks(self._ops)]
        for block in self._blocks:
            for rows, array in zip(self.drawn, block.out, strict=True):
                for op, row in zip(block.ops.tolist(), array, strict=True):
                    rows[op] = row

    def draw(self, keys: Keys, given: Given) -> Drawn[list[Ints]]:
        """Draw for one step; the arrays are reused by the next."""
        for block in self._blocks:
            block.fill(keys, given, self._spread)
        return self.drawn


_NOTHING = np.zeros(0, np.int64)


def _chunks(ops: OpArrays) -> list[NDArray[np.int64]]:
    """Cut the ops of each rank set into runs of at most CHUNK tasks."""
    found = []
    sets = ops.first * (len(ops.members) + 1) + ops.width
    for one in np.unique(sets):
        numbers = np.flatnonzero(sets == one)
        count = int(ops.width[numbers[0]])
        most = max(CHUNK // max(count, 1), 1)
        if count:
            found += [numbers[at : at + most] for at in range(0, len(numbers), most)]
    return found


class _Block:
    """Ops of one rank set."""

    def __init__(self, arrays: OpArrays, ops: NDArray[np.int64]) -> None:
        self.ops = ops
        first, count = int(arrays.first[ops[0]]), int(arrays.width[ops[0]])
        self._ranks = arrays.members[first : first + count]
        column = {
            name: getattr(arrays, name)[ops][:, None]
            for name in ("host_ns", "launch_ns", "fixed_ns", "compute_ns", "memory_ns", "noise")
        }
        self._column = column
        self._work = arrays.work[ops]
        self._inline = arrays.kind[ops] == Kind.INLINE
        shape = len(ops), count
        self.out: Drawn[Ints] = Drawn(*(np.zeros(shape, np.int64) for _ in Drawn._fields))

    def fill(self, keys: Keys, given: Given, spread: Spread) -> None:
        key = extend(keys[self.ops][:, None], self._ranks)
        out, column, ranks = self.out, self._column, self._ranks
        host_q16 = given.host_q16[ranks]
        for rows, name, shift in ((out.host, "host_ns", 42), (out.launch, "launch_ns", 31)):
            factor = spread.host_q16[_bits(key, shift, 11)]
            rows[:] = _scaled(_scaled(factor, column[name]), host_q16)
        launched = column["launch_ns"] > 0
        out.latency[:] = spread.latency_ns[_bits(key, 10, 10)] * launched
        out.gap[:] = spread.gap_ns[_bits(key, 0, 10)]
        out.skew[:] = spread.skew_ns[_bits(key, 20, 11)]
        out.factor_q16[:] = spread.factor_q16[column["noise"], _bits(key, 53, 11)]
        busy = np.maximum(
            _scaled(column["compute_ns"], given.clock_q16[ranks]),
            _scaled(column["memory_ns"], given.memory_q16[ranks]),
        )
        busy = column["fixed_ns"] + _scaled(busy, given.work_q16[self._work][:, ranks])
        out.device[:] = _scaled(busy, out.factor_q16)
        if self._inline.any():
            out.device[self._inline] = _scaled(out.device[self._inline], host_q16)
        if given.preempt_q16[ranks].any():
            self._lose_core(key, given)

    def _lose_core(self, key: Keys, given: Given) -> None:
        """Add the time for which cores are lost; few ops lose theirs."""
        draw = extend(key, 1)
        chance_q16 = given.preempt_q16[self._ranks]
        longest_ns = np.broadcast_to(given.preempt_ns[self._ranks], key.shape)
        losses = (chance_q16 + _bits(draw, 48, 16) >> 16) * (self._column["host_ns"] > 0)
        lost = np.nonzero(losses)
        self.out.host[lost] += losses[lost] * _length(draw[lost], 32, longest_ns[lost])
        if not self._inline.any():
            return
        times = np.maximum(self.out.device // QUANTUM_NS, 1)
        losses = (chance_q16 * times + _bits(draw, 16, 16) >> 16) * self._inline[:, None]
        lost = np.nonzero(losses)
        self.out.device[lost] += losses[lost] * _length(draw[lost], 0, longest_ns[lost])


def _length(draw: Keys, shift: int, longest_ns: Ints) -> Ints:
    return _scaled(longest_ns, _bits(draw, shift, 16) + 1)


def _bits(key: Keys, shift: int, count: int) -> Ints:
    found = (key >> np.uint64(shift)) & np.uint64(2**count - 1)
    return found.view(np.int64)


def _scaled(value: Ints, factor_q16: Ints) -> Ints:
    return value * factor_q16 >> 16
