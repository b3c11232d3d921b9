"""The engine without numba: everything drawn at once, then op after op over its ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from injectors.sim.compiled import FLAT, Compiled, OpArrays
from injectors.sim.drawn import Drawn, Draws
from injectors.sim.noise import Keys
from injectors.sim.noise_classes import Spread
from injectors.sim.program import Ints, Kind, LoaderShape, Stream
from injectors.sim.state import WAKE_UP_NS, Given, State, Times


class NumpyInterpreter:
    """Interprets steps with some ten numpy calls an op (see `state.Interpreter`)."""

    def __init__(self, compiled: Compiled, spread: Spread, loader: LoaderShape) -> None:
        self._draws = Draws(compiled, spread)
        arrays, all_ranks = compiled.arrays, compiled.ranks
        ops = (_Op(arrays, i, ranks, all_ranks) for i, ranks in enumerate(compiled.members))
        self._ops = [op for op in ops if op.width]
        self._loader = loader

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
        drawn = self._draws.draw(keys, given)
        step = _Step(drawn, given, state, times, self._loader, taken)
        handlers = [getattr(step, f"do_{kind.name.lower()}") for kind in Kind]
        gone = absent.tolist()
        for op in self._ops:
            if not gone[op.index]:
                handlers[op.kind](op)


class _Op:
    """One op as Python numbers, which are faster to get at than elements of arrays."""

    def __init__(self, arrays: OpArrays, index: int, ranks: slice | Ints, of: int) -> None:
        own = {
            name: int(column[index])
            for name, column in zip(OpArrays._fields, arrays, strict=True)
            if name not in FLAT
        }
        self.index, self.ranks = index, ranks
        self.kind, self.thread, self.stream, self.other = (
            own[name] for name in ("kind", "thread", "stream", "other")
        )
        self.width, self.transfer, self.pause, self.batch = (
            own[name] for name in ("width", "transfer", "pause", "batch")
        )
        self.fixed_ns, self.memory_ns = own["fixed_ns"], own["memory_ns"]
        self.beside_ns, self.pair, self.launches = own["beside_ns"], own["pair"], own["launch_ns"]
        self.all_ranks = own["width"] == of
        first = own["peer_first"]
        self.peers = arrays.peers[first : first + self.width]
        first, waits = own["earlier_first"], self.width if own["earlier_each"] else 1
        self.earlier = arrays.earlier[first : first + waits]
        first, groups = own["group_first"], own["group_count"]
        self.layout = (own["first"], self.width, first, groups, self.transfer)
        bounds = arrays.bounds[first : first + groups + 1]
        self.starts = bounds[:-1]
        self.group_of = np.repeat(np.arange(groups), np.diff(bounds))


class _Step:
    """One step in progress; a method for each kind of op."""

    def __init__(
        self,
        drawn: Drawn[list[Ints]],
        given: Given,
        state: State,
        times: Times,
        loader: LoaderShape,
        taken: int,
    ) -> None:
        self._drawn, self._given, self._state, self._loader = drawn, given, state, loader
        self._times, self._taken = times, taken
        self._cpu, self._free = list(state.cpu), list(state.free)
        self._host, self._call, self._done = list(times.host), list(times.call), list(times.done)
        self._start, self._end, self._joined = list(times.start), list(times.end), times.joined
        self._outstanding = state.outstanding.tolist()
        self._may_overlap = True  # False once all ranks are past what is on DATA_PARALLEL
        self._most: dict[tuple[int, ...], tuple[Ints, Ints, Ints]] = {}

    def do_host(self, op: _Op) -> None:
        self._finish(op, self._begin(op))

    def do_kernel(self, op: _Op) -> None:
        start = np.maximum(self._launch(op), self._behind(op))
        device = self._drawn.device[op.index]
        if self._may_overlap and op.stream == Stream.COMPUTE:
            device = device + self._overlap(op, start, device)
        self._run(op, start, start + device)

    def do_inline(self, op: _Op) -> None:
        call = self._begin(op)
        end = call + self._drawn.device[op.index]
        self._finish(op, end, call)
        self._start[op.index][op.ranks], self._end[op.index][op.ranks] = call, end

    def do_collective(self, op: _Op) -> None:
        start = self._ready_to_join(op)
        joined = np.maximum.reduceat(start, op.starts)
        busy = np.maximum.reduceat(self._free[Stream.COMPUTE][op.ranks], op.starts)
        most_q16, most_ns, contention_q16 = self._group_most(op)
        factor_q16 = self._drawn.factor_q16[op.index][op.starts]
        transfer = op.fixed_ns + (op.memory_ns * most_q16 >> 16) + most_ns
        transfer = transfer * factor_q16 >> 16
        shared = np.minimum(transfer, np.maximum(busy - joined, 0) + op.beside_ns)
        transfer += shared * contention_q16 >> 16
        end = (joined + transfer)[op.group_of] + self._drawn.skew[op.index]
        self._joined[op.index][op.ranks] = joined[op.group_of]
        self._run(op, start, end)

    def do_send(self, op: _Op) -> None:
        start = self._ready_to_join(op)
        self._run(op, start, start + self._between(op))

    def do_recv(self, op: _Op) -> None:
        start = self._ready_to_join(op)
        joined = np.maximum(start, self._start[op.pair][op.peers])
        self._joined[op.index][op.ranks] = joined
        self._run(op, start, joined + self._between(op))

    def do_wait_stream(self, op: _Op) -> None:
        self._finish(op, self._begin(op))
        free = self._free[op.stream]
        free[op.ranks] = np.maximum(free[op.ranks], self._free[op.other][op.ranks])
        self._touched(op)

    def do_sync(self, op: _Op) -> None:
        call = self._begin(op)
        awake = self._free[op.stream][op.ranks] + WAKE_UP_NS
        self._finish(op, np.maximum(call + self._drawn.launch[op.index], awake), call)

    def do_join(self, op: _Op) -> None:
        cpu = self._cpu[op.thread]
        self._host[op.index][op.ranks] = cpu[op.ranks]
        joined = np.maximum(cpu[op.ranks], self._cpu[op.other][op.ranks])
        self._finish(op, joined + self._drawn.host[op.index])

    def do_next_batch(self, op: _Op) -> None:
        ranks, workers = op.ranks, self._loader.workers
        number = self._taken + op.batch
        now = self._cpu[op.thread][ranks]
        ready = self._state.ready[number % max(workers, 1)]
        taken = self._state.taken[number % max(workers * self._loader.prefetch, 1)]
        fetch_start = np.maximum(ready[ranks], taken[ranks]) if workers else now
        there = fetch_start + self._given.fetch_ns[op.batch][ranks]
        self._host[op.index][ranks] = now
        ready[ranks] = there
        self._times.fetch_start[op.batch][ranks] = fetch_start
        self._times.ready[op.batch][ranks] = there
        handed_out = np.maximum(now, there)
        taken[ranks] = handed_out
        self._finish(op, handed_out + self._drawn.host[op.index])

    def do_pause(self, op: _Op) -> None:
        now = self._cpu[op.thread][op.ranks]
        self._host[op.index][op.ranks] = now
        self._finish(op, now + self._given.pause_ns[op.pause][op.ranks])

    def do_mark(self, op: _Op) -> None:
        now = self._cpu[op.thread][op.ranks]
        self._host[op.index][op.ranks] = now
        both = np.maximum(now, self._free[op.stream][op.ranks])
        self._finish(op, now)
        self._start[op.index][op.ranks] = self._end[op.index][op.ranks] = both

    def _begin(self, op: _Op) -> Ints:
        """Note where the thread is; returns when it has done the op's host time."""
        now = self._cpu[op.thread][op.ranks]
        self._host[op.index][op.ranks] = now
        done: Ints = now + self._drawn.host[op.index]
        return done

    def _finish(self, op: _Op, done: Ints, call: Ints | None = None) -> None:
        self._call[op.index][op.ranks] = done if call is None else call
        self._done[op.index][op.ranks] = self._cpu[op.thread][op.ranks] = done

    def _launch(self, op: _Op) -> Ints:
        """Launch; returns when the device could begin, were its stream idle."""
        call = self._begin(op)
        done = call + self._drawn.launch[op.index]
        if op.launches:
            done = self._back_pressure(op, done)
        self._finish(op, done, call)
        earliest: Ints = call + self._drawn.latency[op.index]
        return earliest

    def _back_pressure(self, op: _Op, done: Ints) -> Ints:
        outstanding = self._outstanding[op.stream]
        if len(op.earlier) == 1:
            which = int(op.earlier[0])
            if which < 0 and not outstanding:
                return done
            row = self._end[which] if which >= 0 else self._state.carried[op.stream][-1 - which]
            later: Ints = np.maximum(done, row[op.ranks])
            return later
        ranks = np.arange(len(self._cpu[0]))[op.ranks]
        own = self._times.end[np.maximum(op.earlier, 0), ranks]
        before = self._state.carried[op.stream][np.maximum(-1 - op.earlier, 0), ranks] * outstanding
        return np.maximum(done, np.where(op.earlier < 0, before, own))

    def _behind(self, op: _Op) -> Ints:
        behind: Ints = self._free[op.stream][op.ranks] + self._drawn.gap[op.index]
        return behind

    def _overlap(self, op: _Op, start: Ints, device: Ints) -> Ints:
        """By how much device work is longer since a collective runs beside it."""
        left = np.maximum(self._free[Stream.DATA_PARALLEL][op.ranks] - start, 0)
        shared = np.minimum(left, device)
        if op.all_ranks and not left.any():  # what takes no time shares none, and ends nothing
            self._may_overlap = False
        longer: Ints = shared * self._given.overlap_q16[op.ranks] >> 16
        return longer

    def _ready_to_join(self, op: _Op) -> Ints:
        start = np.maximum(self._launch(op), self._behind(op))
        after: Ints = np.maximum(start, self._free[op.other][op.ranks])
        return after

    def _run(self, op: _Op, start: Ints, end: Ints) -> None:
        self._start[op.index][op.ranks] = start
        self._end[op.index][op.ranks] = self._free[op.stream][op.ranks] = end
        self._touched(op)

    def _touched(self, op: _Op) -> None:
        if op.stream == Stream.DATA_PARALLEL:
            self._may_overlap = True

    def _between(self, op: _Op) -> Ints:
        """How long a message between two ranks takes."""
        most = [
            np.maximum(rows[op.transfer][op.ranks], rows[op.transfer][op.peers])
            for rows in (self._given.transfer_q16, self._given.transfer_ns)
        ]
        transfer = op.fixed_ns + (op.memory_ns * most[0] >> 16) + most[1]
        found: Ints = transfer * self._drawn.factor_q16[op.index] >> 16
        return found

    def _group_most(self, op: _Op) -> tuple[Ints, Ints, Ints]:
        """Largest transfer factor, transfer addition and contention of each group."""
        known = op.layout
        if known not in self._most:
            rows = (
                self._given.transfer_q16[op.transfer],
                self._given.transfer_ns[op.transfer],
                self._given.contention_q16,
            )
            first, second, third = (np.maximum.reduceat(r[op.ranks], op.starts) for r in rows)
            self._most[known] = first, second, third
        return self._most[known]
