"""Both backends give what the engine is defined to give, bit by bit, on programs of all kinds.

`Reference` is the definition once more, as slow and obvious as can be: Python whole numbers, one
rank at a time.
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from injectors.sim import noise
from injectors.sim.engine import Engine
from injectors.sim.job import ONE
from injectors.sim.noise_classes import Spread, ordinary
from injectors.sim.program import (
    Conditions,
    Kind,
    LoaderShape,
    Noise,
    Op,
    Program,
    Stream,
    Thread,
)

BACKENDS = ["numpy"] + ["numba"] * (importlib.util.find_spec("numba") is not None)

LAUNCHED = (Kind.KERNEL, Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
FIELDS = ("host", "call", "done", "start", "end", "joined")


def scaled(value: int, factor_q16: int) -> int:
    return (value * factor_q16) >> 16


class Reference:
    """Interprets a program step after step; `step` returns field -> {(path, rank): ns}."""

    def __init__(
        self, program: Program, loader: LoaderShape, seed: int, spread: Spread, depth: int
    ) -> None:
        self.program, self.loader, self.seed = program, loader, seed
        self.spread, self.depth = spread, depth
        self.cpu: dict[tuple[int, int], int] = defaultdict(int)
        self.free: dict[tuple[int, int], int] = defaultdict(int)
        self.launches: dict[tuple[int, int], list[int]] = defaultdict(list)  # their ends
        self.ready: dict[int, list[int]] = defaultdict(list)
        self.taken: dict[int, list[int]] = defaultdict(list)

    def step(self, number: int, conditions: Conditions) -> dict[str, dict[tuple[str, int], int]]:
        self.number, self.given = number, conditions
        self.out: dict[str, dict[tuple[str, int], int]] = {name: {} for name in FIELDS}
        for op in self.program.ops:
            if conditions.work_q16[op.work].any():
                getattr(self, op.kind.name.lower())(op)
            elif op.launch_ns and op.kind in LAUNCHED:
                for rank in self.members(op):  # keeps its number, and delays nothing
                    self.launches[op.stream, rank].append(0)
        return self.out

    # What an op draws.

    def ranks(self, op: Op) -> tuple[int, ...]:
        return tuple(range(self.program.ranks)) if op.ranks is None else op.ranks

    def key(self, op: Op, rank: int) -> int:
        return noise.key(self.seed, "engine", self.number, op.path, rank)

    def loss(self, op: Op, rank: int, shift: int, times: int) -> int:
        draw = noise.mix64((self.key(op, rank) + noise.GAMMA) ^ 1)
        whether, length = (draw >> shift) & 65535, (draw >> (shift - 16)) & 65535
        losses = (int(self.given.preempt_q16[rank]) * times + whether) >> 16
        return losses * scaled(int(self.given.preempt_ns[rank]), length + 1)

    def host_time(self, op: Op, rank: int) -> int:
        if op.host_ns == 0:
            return 0
        factor = int(self.spread.host_q16[(self.key(op, rank) >> 42) % 2048])
        spent = scaled(scaled(op.host_ns, factor), int(self.given.host_q16[rank]))
        return spent + self.loss(op, rank, 48, 1)

    def launch_time(self, op: Op, rank: int) -> int:
        factor = int(self.spread.host_q16[(self.key(op, rank) >> 31) % 2048])
        return scaled(scaled(op.launch_ns, factor), int(self.given.host_q16[rank]))

    def factor(self, op: Op, rank: int) -> int:
        return int(self.spread.factor_q16[op.noise, self.key(op, rank) >> 53])

    def device_time(self, op: Op, rank: int) -> int:
        compute = scaled(op.compute_ns, int(self.given.clock_q16[rank]))
        memory = scaled(op.memory_ns, int(self.given.memory_q16[rank]))
        work = int(self.given.work_q16[op.work, rank])
        return scaled(op.fixed_ns + scaled(max(compute, memory), work), self.factor(op, rank))

    # What ops do.

    def note(self, op: Op, rank: int, **values: int) -> None:
        for name, value in values.items():
            self.out[name][op.path, rank] = value

    def host(self, op: Op) -> None:
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            done = self.cpu[op.thread, rank] = begin + self.host_time(op, rank)
            self.note(op, rank, host=begin, call=done, done=done)

    def launch(self, op: Op, rank: int) -> int:
        begin = self.cpu[op.thread, rank]
        call = begin + self.host_time(op, rank)
        done = call + self.launch_time(op, rank)
        ends = self.launches[op.stream, rank]
        if op.launch_ns and len(ends) >= self.depth:
            done = max(done, ends[-self.depth])
        self.cpu[op.thread, rank] = done
        self.note(op, rank, host=begin, call=call, done=done)
        key = self.key(op, rank)
        latency = int(self.spread.latency_ns[(key >> 10) % 1024]) if op.launch_ns else 0
        gap = int(self.spread.gap_ns[key % 1024])
        return max(call + latency, self.free[op.stream, rank] + gap)

    def occupy(self, op: Op, rank: int, start: int, end: int) -> None:
        self.free[op.stream, rank] = end
        if op.launch_ns:
            self.launches[op.stream, rank].append(end)
        self.note(op, rank, start=start, end=end)

    def kernel(self, op: Op) -> None:
        for rank in self.ranks(op):
            start, device = self.launch(op, rank), self.device_time(op, rank)
            left = self.free[Stream.DATA_PARALLEL, rank] - start
            if op.stream == Stream.COMPUTE and left > 0:
                device += scaled(min(device, left), int(self.given.overlap_q16[rank]))
            self.occupy(op, rank, start, start + device)

    def inline(self, op: Op) -> None:
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            call = begin + self.host_time(op, rank)
            device = scaled(self.device_time(op, rank), int(self.given.host_q16[rank]))
            end = call + device + self.loss(op, rank, 16, max(device // 4_000_000, 1))
            self.cpu[op.thread, rank] = end
            self.note(op, rank, host=begin, call=call, start=call, end=end, done=end)

    def arrive(self, op: Op, rank: int) -> int:
        return max(self.launch(op, rank), self.free[op.other, rank])

    def transfer(self, op: Op, first: int, members: list[int]) -> int:
        slowest = max(int(self.given.transfer_q16[op.transfer, rank]) for rank in members)
        added = max(int(self.given.transfer_ns[op.transfer, rank]) for rank in members)
        return scaled(op.fixed_ns + scaled(op.memory_ns, slowest) + added, self.factor(op, first))

    def collective(self, op: Op) -> None:
        for group in self.program.groups[op.groups]:
            if not set(group) <= set(self.ranks(op)):
                continue
            start = {rank: self.arrive(op, rank) for rank in group}
            joined = max(start.values())
            transfer = self.transfer(op, group[0], group)
            busy = max(self.free[Stream.COMPUTE, rank] for rank in group) - joined
            shared = min(transfer, max(busy, 0) + self.beside(op))
            most = max(int(self.given.contention_q16[rank]) for rank in group)
            transfer += scaled(shared, most)
            for rank in group:
                skew = int(self.spread.skew_ns[(self.key(op, rank) >> 20) % 2048])
                self.occupy(op, rank, start[rank], joined + transfer + skew)
                self.note(op, rank, joined=joined)

    def beside(self, op: Op) -> int:
        """Kernels that are launched beside a collective before anything waits for its stream."""
        rank = self.members(op)[0]
        if op.stream == Stream.COMPUTE:
            return 0
        total, ops = 0, self.program.ops
        for later in ops[ops.index(op) + 1 :]:
            if rank not in self.members(later):
                continue
            waits = later.kind == Kind.WAIT_STREAM and later.stream == Stream.COMPUTE
            if waits and later.other == op.stream:
                return total
            if later.kind == Kind.SYNC and later.stream == op.stream:
                return total
            if later.kind == Kind.KERNEL and later.stream == Stream.COMPUTE:
                total += later.fixed_ns + max(later.compute_ns, later.memory_ns)
        return 0

    def members(self, op: Op) -> tuple[int, ...]:
        ranks = self.ranks(op)
        if op.kind != Kind.COLLECTIVE:
            return ranks
        return tuple(r for group in self.program.groups[op.groups] for r in group if r in ranks)

    def send(self, op: Op) -> None:
        for rank, peer in zip(self.ranks(op), op.peers, strict=True):
            start = self.arrive(op, rank)
            self.occupy(op, rank, start, start + self.transfer(op, rank, [rank, peer]))

    def recv(self, op: Op) -> None:
        for rank, peer in zip(self.ranks(op), op.peers, strict=True):
            start = self.arrive(op, rank)
            joined = max(start, self.out["start"].get((op.pair, peer), 0))
            self.note(op, rank, joined=joined)
            self.occupy(op, rank, start, joined + self.transfer(op, rank, [rank, peer]))

    def wait_stream(self, op: Op) -> None:
        self.host(op)
        for rank in self.ranks(op):
            both = self.free[op.stream, rank], self.free[op.other, rank]
            self.free[op.stream, rank] = max(both)

    def sync(self, op: Op) -> None:
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            call = begin + self.host_time(op, rank)
            awake = self.free[op.stream, rank] + 3_000
            done = max(call + self.launch_time(op, rank), awake)
            self.cpu[op.thread, rank] = done
            self.note(op, rank, host=begin, call=call, done=done)

    def join(self, op: Op) -> None:
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            done = max(begin, self.cpu[op.other, rank]) + self.host_time(op, rank)
            self.cpu[op.thread, rank] = done
            self.note(op, rank, host=begin, call=done, done=done)

    def next_batch(self, op: Op) -> None:
        workers, ahead = self.loader.workers, self.loader.workers * self.loader.prefetch
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            ready, taken = self.ready[rank], self.taken[rank]
            number, fetch_start = len(taken), 0
            if workers == 0:
                fetch_start = begin
            if 0 < workers <= number:
                fetch_start = ready[number - workers]
            if 0 < ahead <= number:
                fetch_start = max(fetch_start, taken[number - ahead])
            ready.append(fetch_start + int(self.given.fetch_ns[op.batch, rank]))
            taken.append(max(begin, ready[-1]))
            done = taken[-1] + self.host_time(op, rank)
            self.cpu[op.thread, rank] = done
            self.note(op, rank, host=begin, call=done, done=done)

    def pause(self, op: Op) -> None:
        for rank in self.ranks(op):
            begin = self.cpu[op.thread, rank]
            done = self.cpu[op.thread, rank] = begin + int(self.given.pause_ns[op.pause, rank])
            self.note(op, rank, host=begin, call=done, done=done)

    def mark(self, op: Op) -> None:
        for rank in self.ranks(op):
            now = self.cpu[op.thread, rank]
            both = max(now, self.free[op.stream, rank])
            self.note(op, rank, host=now, call=now, done=now, start=both, end=both)


SIZES = st.integers(0, 20_000)
FACTORS = st.integers(30_000, 200_000)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of every kind of op, on some ranks or all, in orders that need make no sense."""
    count = draw(st.integers(1, 6))
    order = draw(st.permutations(range(count)))
    cut = draw(st.integers(1, count))
    groups = {"all": [list(range(count))], "some": [order[:cut]], "own": [[r] for r in order]}
    if cut < count:
        groups["two"] = [order[:cut], order[cut:]]
    program = Program(
        count,
        groups=groups,
        work_rows=["constant", "tokens"],
        transfer_rows=["data", "other"],
        pauses=["gc", "poll"],
        batches=2,
    )
    for index in range(draw(st.integers(1, 25))):
        program.add(draw(_ops(program, index)))
    takers = tuple(draw(st.lists(st.sampled_from(range(count)), min_size=1, unique=True)))
    for batch, place in enumerate(sorted(draw(st.tuples(*[st.integers(0, 25)] * 2)))):
        taken = Op(Kind.NEXT_BATCH, f"next/{batch}", batch=batch, ranks=takers, host_ns=900)
        program.ops.insert(min(place + batch, len(program.ops)), taken)
    return program


@st.composite
def _ops(draw: st.DrawFn, program: Program, index: int) -> Op:
    kind = draw(st.sampled_from([kind for kind in Kind if kind != Kind.NEXT_BATCH]))
    sends = [op for op in program.ops if op.kind == Kind.SEND]
    if kind == Kind.RECV and not sends:
        kind = Kind.SEND
    everyone = range(program.ranks)
    ranks = draw(st.none() | st.lists(st.sampled_from(everyone), min_size=1, unique=True))
    pair, peers, partition = "", [], ""
    if kind == Kind.COLLECTIVE:
        partition = draw(st.sampled_from(sorted(program.groups)))
        chosen = draw(st.lists(st.sampled_from(program.groups[partition]), min_size=1))
        ranks = draw(st.sampled_from([None, sorted({r for group in chosen for r in group})]))
    if kind == Kind.RECV:
        send = draw(st.sampled_from(sends))
        pair, able = send.path, everyone if send.ranks is None else send.ranks
    if kind in (Kind.SEND, Kind.RECV):
        of = len(everyone if ranks is None else ranks)
        able = everyone if kind == Kind.SEND else able
        peers = draw(st.lists(st.sampled_from(able), min_size=of, max_size=of))
    return Op(
        kind,
        f"op/{index}",
        thread=draw(st.sampled_from(Thread)),
        stream=draw(st.sampled_from(Stream)),
        other=draw(st.sampled_from(Thread if kind == Kind.JOIN else Stream)),
        host_ns=draw(SIZES),
        launch_ns=draw(SIZES),
        fixed_ns=draw(SIZES),
        compute_ns=draw(st.integers(0, 30_000_000)),
        memory_ns=draw(SIZES),
        noise=draw(st.sampled_from(Noise)),
        work=draw(st.integers(0, 1)),
        transfer=draw(st.integers(0, 1)),
        pause=draw(st.integers(0, 1)),
        ranks=None if ranks is None else tuple(ranks),
        groups=partition,
        peers=tuple(peers),
        pair=pair,
    )


@st.composite
def conditions(draw: st.DrawFn, program: Program) -> Conditions:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def array(low: int, high: int, *rows: int) -> np.ndarray:
        return rng.integers(low, high, (*rows, program.ranks))

    work = array(30_000, 200_000, 2)
    work[1] *= draw(st.integers(0, 1))
    return Conditions(
        work_q16=work,
        clock_q16=array(60_000, 90_000),
        memory_q16=array(60_000, 90_000),
        host_q16=array(60_000, 200_000),
        preempt_q16=array(0, 30_000) * array(0, 2),
        preempt_ns=array(0, 4_000_000),
        transfer_q16=array(30_000, 200_000, 2),
        transfer_ns=array(0, 20_000, 2),
        pause_ns=array(0, 100_000, 2),
        fetch_ns=array(0, 300_000, 2),
        overlap_q16=array(0, 30_000),
        contention_q16=array(0, 30_000),
    )


def _as_dict(program: Program, values: np.ndarray) -> dict[tuple[str, int], int]:
    return {
        (op.path, rank): int(values[index, rank])
        for index, op in enumerate(program.ops)
        for rank in range(program.ranks)
        if values[index, rank] != -1
    }


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_both_backends_give_what_the_reference_gives(data: st.DataObject) -> None:
    program = data.draw(programs())
    loader = LoaderShape(data.draw(st.integers(0, 3)), data.draw(st.integers(1, 2)))
    depth, seed = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 2**63 - 1))
    _check(program, loader, depth, seed, lambda: data.draw(conditions(program)))


def test_a_thread_whose_join_does_not_happen_begins_by_itself() -> None:
    """Then its launches may have to wait for those of the step before, as any thread's."""
    ops = [
        Op(kind=Kind.JOIN, path="join", thread=Thread.AUTOGRAD, other=Thread.MAIN, work=1),
        Op(kind=Kind.PAUSE, path="pause"),
        Op(kind=Kind.KERNEL, path="kernel", thread=Thread.AUTOGRAD, launch_ns=1),
    ]
    program = Program(2, ops, work_rows=["constant", "tokens"], pauses=["gc"])
    _check(program, LoaderShape(0, 1), 1, 0, lambda: _even(pause_ns=[[25_000, 60_000]]))


def test_a_kernel_that_takes_no_time_leaves_others_to_overlap() -> None:
    ops = [
        Op(kind=Kind.KERNEL, path="nothing"),
        Op(kind=Kind.KERNEL, path="little", memory_ns=2),
        Op(kind=Kind.KERNEL, path="beside", stream=Stream.DATA_PARALLEL, memory_ns=50_000),
    ]
    program = Program(2, ops, work_rows=["constant", "tokens"], pauses=["gc"])
    _check(program, LoaderShape(0, 1), 6, 53, lambda: _even(overlap_q16=[3 * ONE, 3 * ONE]))


def _even(**other: list[Any]) -> Conditions:
    """Conditions of two ranks that are alike, but for what is given."""
    plain, none = [ONE, ONE], [0, 0]
    rows = {
        "work_q16": [plain, none],
        "transfer_q16": np.zeros((0, 2)),
        "transfer_ns": np.zeros((0, 2)),
        "pause_ns": [none],
        "fetch_ns": np.zeros((0, 2)),
        "preempt_q16": none,
        "preempt_ns": none,
        "overlap_q16": none,
        "contention_q16": none,
    }
    factors = dict.fromkeys(("clock_q16", "memory_q16", "host_q16"), plain)
    arrays = {name: np.array(value, np.int64) for name, value in (rows | factors | other).items()}
    return Conditions(**arrays)


def _check(
    program: Program, loader: LoaderShape, depth: int, seed: int, draw: Callable[[], Conditions]
) -> None:
    engines = [Engine(program, loader, seed, name, queue_depth=depth) for name in BACKENDS]
    reference = Reference(program, loader, seed, ordinary(), depth)
    for step in range(3):
        now = draw()
        expected = reference.step(step, now)
        for engine in engines:
            times = engine.step(step, now)
            for name in FIELDS:
                found = _as_dict(program, getattr(times, name))
                assert found == expected[name], (engine.backend, step, name)
            for rank, ready in reference.ready.items():
                assert times.ready[:, rank].tolist() == ready[-2:]
