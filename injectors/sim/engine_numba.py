"""The engine compiled by numba: op after op, rank after rank, noise drawn where it is needed.

Everything is int64 but keys, which are uint64; the two are never mixed, since numba makes floats
of the two. numba keeps the machine code until this file changes, so all functions stand here, and
what other files might change (times, tables) is passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from injectors.sim.compiled import Compiled, OpArrays
from injectors.sim.drawn import QUANTUM_NS
from injectors.sim.noise import GAMMA, MIX_1, MIX_2, Keys
from injectors.sim.noise_classes import Spread
from injectors.sim.program import Ints, Kind, LoaderShape, Stream
from injectors.sim.state import WAKE_UP_NS, Given, State, Times

Function = TypeVar("Function", bound=Callable[..., object])

U_GAMMA, U_MIX_1, U_MIX_2 = np.uint64(GAMMA), np.uint64(MIX_1), np.uint64(MIX_2)
U_0, U_1, U_27, U_30, U_31 = (np.uint64(number) for number in (0, 1, 27, 30, 31))
U_11_BITS, U_10_BITS, U_16_BITS = np.uint64(2**11 - 1), np.uint64(2**10 - 1), np.uint64(2**16 - 1)
DEVICE, HOST, LAUNCH, SKEW, LATENCY = (np.uint64(shift) for shift in (53, 42, 31, 20, 10))
HOST_LOSS, HOST_LENGTH, OWN_LOSS, OWN_LENGTH = (np.uint64(shift) for shift in (48, 32, 16, 0))
COMPUTE, DATA_PARALLEL = int(Stream.COMPUTE), int(Stream.DATA_PARALLEL)
K_HOST, K_KERNEL, K_INLINE, K_COLLECTIVE = (int(Kind(i)) for i in range(4))
K_SEND, K_RECV, K_WAIT, K_SYNC = (int(Kind(i)) for i in range(4, 8))
K_JOIN, K_NEXT_BATCH, K_PAUSE, K_MARK = (int(Kind(i)) for i in range(8, 12))


def _compiled(function: Function) -> Function:
    """Compile; the machine code is kept on disk where there is a place for it."""
    try:
        return cast(Function, numba.njit(cache=True)(function))
    except RuntimeError:  # no folder that can be written to
        return cast(Function, numba.njit(function))


class NumbaInterpreter:
    """Interprets steps in machine code (see `state.Interpreter`)."""

    def __init__(self, compiled: Compiled, spread: Spread, loader: LoaderShape) -> None:
        self._ops, self._spread = compiled.arrays, spread
        self._ahead = loader.workers, loader.workers * loader.prefetch

    def run(
        self,
        keys: Keys,
        given: Given,
        state: State,
        times: Times,
        taken: int,
        absent: NDArray[np.bool_],
    ) -> None:
        """Interpret one step (see `state.Interpreter`)."""
        fixed = (taken, *self._ahead, QUANTUM_NS, WAKE_UP_NS)
        _interpret(self._ops, self._spread, keys, given, state, times, absent, *fixed)


@_compiled
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> U_30)) * U_MIX_1
    z = (z ^ (z >> U_27)) * U_MIX_2
    return z ^ (z >> U_31)


@_compiled
def _extend(key: np.uint64, part: np.uint64) -> np.uint64:
    return _mix((key + U_GAMMA) ^ part)


@_compiled
def _bits(key: np.uint64, shift: np.uint64, mask: np.uint64) -> np.int64:
    return np.int64((key >> shift) & mask)


@_compiled
def _lost(key: np.uint64, first: bool, times: int, chance_q16: int, longest_ns: int) -> int:
    """Time for which the core is lost; see `drawn` for the fields."""
    draw = _extend(key, U_1)
    loss, length = (HOST_LOSS, HOST_LENGTH) if first else (OWN_LOSS, OWN_LENGTH)
    losses = (chance_q16 * times + _bits(draw, loss, U_16_BITS)) >> 16
    return int(losses * (longest_ns * (_bits(draw, length, U_16_BITS) + 1) >> 16))


@_compiled
def _host(
    key: np.uint64, nominal_ns: int, table: Ints, host_q16: int, chance_q16: int, longest_ns: int
) -> int:
    """Host time of an op on a rank before its call."""
    if nominal_ns == 0:
        return 0
    spent = (table[_bits(key, HOST, U_11_BITS)] * nominal_ns >> 16) * host_q16 >> 16
    if chance_q16 > 0:
        spent += _lost(key, True, 1, chance_q16, longest_ns)
    return int(spent)


@_compiled
def _issue(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
) -> None:
    """Launch an op on all of its ranks, up to the start of its kernels."""
    host_table, latency_ns, gap_ns = spread.host_q16, spread.latency_ns, spread.gap_ns
    host_q16, chance_q16, longest_ns = given.host_q16, given.preempt_q16, given.preempt_ns
    cpu, free, carried = state.cpu[ops.thread[i]], state.free[ops.stream[i]], state.carried
    stream, outstanding = ops.stream[i], state.outstanding[ops.stream[i]] != 0
    host, call, done, start = times.host[i], times.call[i], times.done[i], times.start[i]
    members, first, earlier, end = ops.members, ops.first[i], ops.earlier, times.end
    waits, each = ops.earlier_first[i], ops.earlier_each[i]
    host_ns, launch_ns = ops.host_ns[i], ops.launch_ns[i]
    after = state.free[ops.other[i]] if ops.kind[i] != K_KERNEL else free
    for m in range(ops.width[i]):
        r = members[first + m]
        own = _extend(key, np.uint64(r))
        host[r] = cpu[r]
        begin = cpu[r] + _host(own, host_ns, host_table, host_q16[r], chance_q16[r], longest_ns[r])
        call[r] = begin
        launched = host_table[_bits(own, LAUNCH, U_11_BITS)] * launch_ns >> 16
        back = begin + (launched * host_q16[r] >> 16)
        if launch_ns != 0:
            begin += latency_ns[_bits(own, LATENCY, U_10_BITS)]
            before = earlier[waits + each * m]
            if before >= 0:
                back = max(back, end[before, r])
            elif outstanding:
                back = max(back, carried[stream, -1 - before, r])
        done[r] = cpu[r] = back
        idle = free[r] + gap_ns[_bits(own, U_0, U_10_BITS)]
        start[r] = max(begin, idle, after[r])


@_compiled
def _devices(
    i: int, key: np.uint64, ops: OpArrays, spread: Spread, given: Given, out: Ints
) -> None:
    """Write what the device's own work takes on each of an op's ranks."""
    factors, members, first = spread.factor_q16[ops.noise[i]], ops.members, ops.first[i]
    fixed_ns, compute_ns, memory_ns = ops.fixed_ns[i], ops.compute_ns[i], ops.memory_ns[i]
    clock_q16, memory_q16, work_q16 = given.clock_q16, given.memory_q16, given.work_q16[ops.work[i]]
    for m in range(ops.width[i]):
        r = members[first + m]
        busy = max(compute_ns * clock_q16[r] >> 16, memory_ns * memory_q16[r] >> 16)
        factor = factors[_bits(_extend(key, np.uint64(r)), DEVICE, U_11_BITS)]
        out[r] = (fixed_ns + (busy * work_q16[r] >> 16)) * factor >> 16


@_compiled
def _kernels(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
) -> None:
    _issue(i, key, ops, spread, given, state, times)
    start, end, free = times.start[i], times.end[i], state.free[ops.stream[i]]
    _devices(i, key, ops, spread, given, end)
    members, first, beside = ops.members, ops.first[i], state.free[DATA_PARALLEL]
    overlap_q16, overlaps = given.overlap_q16, ops.stream[i] == COMPUTE
    for m in range(ops.width[i]):
        r = members[first + m]
        busy = end[r]
        if overlaps:
            shared = min(max(beside[r] - start[r], 0), busy)
            busy += shared * overlap_q16[r] >> 16
        end[r] = free[r] = start[r] + busy


@_compiled
def _inlines(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
    quantum_ns: int,
) -> None:
    host, call, done, start = times.host[i], times.call[i], times.done[i], times.start[i]
    end, cpu, host_table = times.end[i], state.cpu[ops.thread[i]], spread.host_q16
    host_q16, chance_q16, longest_ns = given.host_q16, given.preempt_q16, given.preempt_ns
    members, first, host_ns = ops.members, ops.first[i], ops.host_ns[i]
    _devices(i, key, ops, spread, given, end)
    for m in range(ops.width[i]):
        r = members[first + m]
        own = _extend(key, np.uint64(r))
        busy = end[r] * host_q16[r] >> 16
        if chance_q16[r] > 0:
            chances = max(busy // quantum_ns, 1)
            busy += _lost(own, False, chances, chance_q16[r], longest_ns[r])
        host[r] = cpu[r]
        begin = cpu[r] + _host(own, host_ns, host_table, host_q16[r], chance_q16[r], longest_ns[r])
        call[r] = start[r] = begin
        done[r] = end[r] = cpu[r] = begin + busy


@_compiled
def _collective(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
) -> None:
    _issue(i, key, ops, spread, given, state, times)
    row, start, end, joined_at = ops.transfer[i], times.start[i], times.end[i], times.joined[i]
    free, compute, members = state.free[ops.stream[i]], state.free[COMPUTE], ops.members
    factors, skew_ns = spread.factor_q16[ops.noise[i]], spread.skew_ns
    transfer_q16, transfer_ns = given.transfer_q16[row], given.transfer_ns[row]
    for g in range(ops.group_count[i]):
        begin = ops.first[i] + ops.bounds[ops.group_first[i] + g]
        stop = ops.first[i] + ops.bounds[ops.group_first[i] + g + 1]
        joined = busy = most_q16 = most_ns = contention_q16 = 0
        for m in range(begin, stop):
            r = members[m]
            joined, busy = max(joined, start[r]), max(busy, compute[r])
            most_q16, most_ns = max(most_q16, transfer_q16[r]), max(most_ns, transfer_ns[r])
            contention_q16 = max(contention_q16, given.contention_q16[r])
        own = _extend(key, np.uint64(members[begin]))
        transfer = ops.fixed_ns[i] + (ops.memory_ns[i] * most_q16 >> 16) + most_ns
        transfer = transfer * factors[_bits(own, DEVICE, U_11_BITS)] >> 16
        shared = min(transfer, max(busy - joined, 0) + ops.beside_ns[i])
        transfer += shared * contention_q16 >> 16
        for m in range(begin, stop):
            r = members[m]
            own = _extend(key, np.uint64(r))
            joined_at[r] = joined
            end[r] = free[r] = joined + transfer + skew_ns[_bits(own, SKEW, U_11_BITS)]


@_compiled
def _messages(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
) -> None:
    """SEND and RECV."""
    _issue(i, key, ops, spread, given, state, times)
    row, pair = ops.transfer[i], ops.pair[i]
    for m in range(ops.width[i]):
        r = ops.members[ops.first[i] + m]
        peer = ops.peers[ops.peer_first[i] + m]
        begin = times.start[i, r]
        if pair >= 0:
            begin = max(begin, times.start[pair, peer])
            times.joined[i, r] = begin
        most_q16 = max(given.transfer_q16[row, r], given.transfer_q16[row, peer])
        most_ns = max(given.transfer_ns[row, r], given.transfer_ns[row, peer])
        own = _extend(key, np.uint64(r))
        factor_q16 = spread.factor_q16[ops.noise[i], _bits(own, DEVICE, U_11_BITS)]
        transfer = ops.fixed_ns[i] + (ops.memory_ns[i] * most_q16 >> 16) + most_ns
        times.end[i, r] = begin + (transfer * factor_q16 >> 16)
        state.free[ops.stream[i], r] = times.end[i, r]


@_compiled
def _next_batch(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
    taken: int,
    workers: int,
    ahead: int,
) -> None:
    thread, batch = ops.thread[i], ops.batch[i]
    ready, handed_out = (taken + batch) % max(workers, 1), (taken + batch) % max(ahead, 1)
    for m in range(ops.width[i]):
        r = ops.members[ops.first[i] + m]
        now = state.cpu[thread, r]
        begin = max(state.ready[ready, r], state.taken[handed_out, r]) if workers > 0 else now
        there = begin + given.fetch_ns[batch, r]
        state.ready[ready, r] = there
        times.fetch_start[batch, r], times.ready[batch, r] = begin, there
        state.taken[handed_out, r] = max(now, there)
        done = max(now, there) + _host(
            _extend(key, np.uint64(r)),
            ops.host_ns[i],
            spread.host_q16,
            given.host_q16[r],
            given.preempt_q16[r],
            given.preempt_ns[r],
        )
        times.host[i, r], times.call[i, r], times.done[i, r] = now, done, done
        state.cpu[thread, r] = done


@_compiled
def _on_thread(
    i: int,
    key: np.uint64,
    ops: OpArrays,
    spread: Spread,
    given: Given,
    state: State,
    times: Times,
    wake_up_ns: int,
) -> None:
    """Ops that launch nothing: HOST, WAIT_STREAM, SYNC, JOIN, PAUSE and MARK."""
    kind, cpu, other_cpu = ops.kind[i], state.cpu[ops.thread[i]], state.cpu[0]
    free, other_free = state.free[ops.stream[i]], state.free[ops.other[i]]
    if kind == K_JOIN:
        other_cpu = state.cpu[ops.other[i]]
    host, call, done, start, end = (
        times.host[i],
        times.call[i],
        times.done[i],
        times.start[i],
        times.end[i],
    )
    members, first, host_ns, table = ops.members, ops.first[i], ops.host_ns[i], spread.host_q16
    host_q16, chance_q16, longest_ns = given.host_q16, given.preempt_q16, given.preempt_ns
    if kind in (K_PAUSE, K_MARK):
        host_ns = 0
    for m in range(ops.width[i]):
        r = members[first + m]
        own = _extend(key, np.uint64(r))
        now = cpu[r]
        spent = _host(own, host_ns, table, host_q16[r], chance_q16[r], longest_ns[r])
        if kind == K_JOIN:
            spent += max(other_cpu[r] - now, 0)
        elif kind == K_PAUSE:
            spent = given.pause_ns[ops.pause[i], r]
        back = now + spent
        host[r], call[r] = now, back
        if kind == K_SYNC:
            launched = table[_bits(own, LAUNCH, U_11_BITS)] * ops.launch_ns[i] >> 16
            back = max(back + (launched * host_q16[r] >> 16), free[r] + wake_up_ns)
        elif kind == K_WAIT:
            free[r] = max(free[r], other_free[r])
        elif kind == K_MARK:
            start[r] = end[r] = max(now, free[r])
        done[r] = cpu[r] = back


@_compiled
def _interpret(
    ops: OpArrays,
    spread: Spread,
    keys: Keys,
    given: Given,
    state: State,
    times: Times,
    absent: NDArray[np.bool_],
    taken: int,
    workers: int,
    ahead: int,
    quantum_ns: int,
    wake_up_ns: int,
) -> None:
    for i in range(ops.kind.size):
        if absent[i]:
            continue
        kind, key = ops.kind[i], keys[i]
        if kind == K_KERNEL:
            _kernels(i, key, ops, spread, given, state, times)
        elif kind == K_INLINE:
            _inlines(i, key, ops, spread, given, state, times, quantum_ns)
        elif kind == K_COLLECTIVE:
            _collective(i, key, ops, spread, given, state, times)
        elif kind in (K_SEND, K_RECV):
            _messages(i, key, ops, spread, given, state, times)
        elif kind == K_NEXT_BATCH:
            _next_batch(i, key, ops, spread, given, state, times, taken, workers, ahead)
        else:
            _on_thread(i, key, ops, spread, given, state, times, wake_up_ns)
