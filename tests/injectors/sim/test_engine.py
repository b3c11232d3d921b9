"""The engine on programs small enough to work out by hand.

Latency is 5 us, the gap between kernels 1 us, everything else is as the program says.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from injectors.sim.engine import Engine, columns
from injectors.sim.noise_classes import constant, ordinary
from injectors.sim.program import (
    Conditions,
    Kind,
    LoaderShape,
    Noise,
    Op,
    Program,
    StepTimes,
    Stream,
    Thread,
)

ONE = 65536
BACKENDS = ["numpy"] + ["numba"] * (importlib.util.find_spec("numba") is not None)
COMPUTE, DATA, COPY, SEND, RECV = Stream(0), Stream(1), Stream(2), Stream(5), Stream(6)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def program(*ops: Op, ranks: int = 2, **fields: Any) -> Program:
    fields.setdefault("groups", {"all": [list(range(ranks))]})
    fields.setdefault("transfer_rows", ["all"])
    fields.setdefault("pauses", ["gc"])
    fields.setdefault("work_rows", ["constant", "tokens"])
    return Program(ranks, ops=list(ops), **fields)


def usual(program: Program, **changed: Any) -> Conditions:
    """Nominal conditions but for what is given, by rank."""
    ranks = program.ranks

    def full(value: int, *rows: int) -> np.ndarray:
        return np.full((*rows, ranks), value, np.int64)

    found = Conditions(
        work_q16=full(ONE, len(program.work_rows)),
        clock_q16=full(ONE),
        memory_q16=full(ONE),
        host_q16=full(ONE),
        preempt_q16=full(0),
        preempt_ns=full(0),
        transfer_q16=full(ONE, len(program.transfer_rows)),
        transfer_ns=full(0, len(program.transfer_rows)),
        pause_ns=full(0, len(program.pauses)),
        fetch_ns=full(0, program.batches),
        overlap_q16=full(0),
        contention_q16=full(0),
    )
    shapes = {name: getattr(found, name).shape for name in changed}
    arrays = {n: np.array(v, np.int64).reshape(shapes[n]) for n, v in changed.items()}
    return replace(found, **arrays)


def run(
    backend: str,
    program: Program,
    *steps: Conditions,
    **settings: Any,
) -> StepTimes:
    """Return the times of the last of `steps`, or of one nominal step."""
    settings.setdefault("spread", constant())
    engine = Engine(program, LoaderShape(0), 7, backend, **settings)
    assert engine.backend == backend
    for number, conditions in enumerate(steps or [usual(program)]):
        times = engine.step(number, conditions)
    return times


def kernel(path: str, device_ns: int, **fields: Any) -> Op:
    return Op(Kind.KERNEL, path, **{"host_ns": 10, "launch_ns": 20, "fixed_ns": device_ns} | fields)


def reduce(path: str, ns: int, **fields: Any) -> Op:
    usual = {"stream": DATA, "host_ns": 10, "launch_ns": 20, "groups": "all", "memory_ns": ns}
    return Op(Kind.COLLECTIVE, path, **usual | fields)


def test_kernels_queue_behind_each_other(backend: str) -> None:
    times = run(backend, program(kernel("a", 100), kernel("b", 50)))
    # a: host 0-10, launch 10-30, starts 10 + 5000; b: host 30-40, starts 5110 + 1000.
    assert times.host[:, 0].tolist() == [0, 30]
    assert times.call[:, 0].tolist() == [10, 40]
    assert times.done[:, 0].tolist() == [30, 60]
    assert times.start[:, 0].tolist() == [5_010, 6_110]
    assert times.end[:, 1].tolist() == [5_110, 6_160]
    assert (times.joined == -1).all()


def test_kernels_inside_of_a_graph_start_without_latency(backend: str) -> None:
    times = run(backend, program(kernel("a", 9_000, launch_ns=0), kernel("b", 50, launch_ns=0)))
    assert times.done[:, 0].tolist() == [10, 20]
    assert times.start[:, 0].tolist() == [1_000, 11_000]


def test_device_time_is_the_longer_of_arithmetic_and_memory(backend: str) -> None:
    one = program(kernel("a", 100, compute_ns=1_000, memory_ns=1_800, work=1))
    given = usual(
        one,
        clock_q16=[2 * ONE, ONE],
        memory_q16=[ONE, 3 * ONE],
        work_q16=[[ONE, ONE], [ONE, ONE // 2]],
    )
    times = run(backend, one, given)
    # Rank 0: max(2000, 1800); rank 1: max(1000, 5400) / 2.
    assert (times.end - times.start)[0].tolist() == [2_100, 2_800]


def test_host_time_takes_longer_on_a_slow_host(backend: str) -> None:
    one = program(Op(Kind.HOST, "a", host_ns=1_000), kernel("b", 0))
    times = run(backend, one, usual(one, host_q16=[ONE, 3 * ONE]))
    assert times.done[:, 1].tolist() == [3_000, 3_000 + 30 + 60]
    assert times.call[0].tolist() == [1_000, 3_000]
    assert (times.start[0] == -1).all()


def test_a_full_queue_holds_the_launch_up(backend: str) -> None:
    two_deep = program(*(kernel(f"k{i}", 10_000) for i in range(4)))
    times = run(backend, two_deep, queue_depth=2)
    # k0 runs 5010-15010, k1 to 26010: the launches of k2 and k3 return when those are over.
    assert times.end[:, 0].tolist() == [15_010, 26_010, 37_010, 48_010]
    assert times.done[:, 0].tolist() == [30, 60, 15_010, 26_010]


def test_a_full_queue_holds_the_next_step_up_too(backend: str) -> None:
    three = program(*(kernel(f"k{i}", 10_000) for i in range(3)))
    first = usual(three)
    times = run(backend, three, first, first, queue_depth=4)
    # The step before ended at 15010, 26010, 37010; the second launch now is the fifth of all.
    assert times.done[:, 0].tolist() == [90 + 30, 15_010, 26_010]


def test_each_rank_and_stream_has_a_queue_of_its_own(backend: str) -> None:
    ops = [kernel("a", 10_000), kernel("b", 10_000, ranks=(1,)), kernel("c", 10_000)]
    times = run(backend, program(*ops, kernel("d", 1, stream=COPY)), queue_depth=2)
    assert times.done[2].tolist() == [60, 15_010]
    assert times.done[3].tolist() == [90, 15_040]


def test_a_collective_starts_with_its_last_rank(backend: str) -> None:
    late = program(Op(Kind.PAUSE, "pause/gc"), reduce("sum", 30_000, fixed_ns=500))
    times = run(backend, late, usual(late, pause_ns=[[0, 70_000]]))
    assert times.start[1].tolist() == [5_010, 75_010]
    assert times.joined[1].tolist() == [75_010, 75_010]
    assert times.end[1].tolist() == [105_510, 105_510]
    assert times.done[1].tolist() == [30, 70_030]


def test_groups_join_by_themselves_and_take_their_slowest_member(backend: str) -> None:
    groups = {"pairs": [[2, 0], [1, 3]]}
    one = program(reduce("sum", 1_000, groups="pairs"), ranks=5, groups=groups)
    given = usual(
        one,
        host_q16=[ONE, ONE, 100 * ONE, ONE, ONE],
        transfer_q16=[[ONE, 5 * ONE, 2 * ONE, ONE, 9 * ONE]],
        transfer_ns=[[0, 0, 0, 7, 0]],
    )
    times = run(backend, one, given)
    assert times.joined[0].tolist() == [6_000, 5_010, 6_000, 5_010, -1]
    assert times.end[0].tolist() == [8_000, 10_017, 8_000, 10_017, -1]
    assert times.host[0].tolist() == [0, 0, 0, 0, -1]


def test_a_collective_begins_after_what_was_computed(backend: str) -> None:
    times = run(backend, program(kernel("a", 40_000), reduce("sum", 1_000), kernel("b", 10)))
    assert times.start[:, 0].tolist() == [5_010, 45_010, 46_010]


def test_computation_beside_a_collective_takes_longer(backend: str) -> None:
    beside = program(reduce("sum", 30_000), kernel("a", 20_000), kernel("b", 20_000))
    times = run(backend, beside, usual(beside, overlap_q16=[ONE // 4, 0]))
    # The sum runs 5010-35010. a: 5040-30040, all of it beside; b: from 31040, 3970 ns beside.
    assert times.end[0].tolist() == [35_010, 35_010]
    assert times.end[1].tolist() == [30_040, 25_040]
    assert times.end[2].tolist() == [51_040 + 3_970 // 4, 46_040]


def test_a_collective_beside_computation_takes_longer(backend: str) -> None:
    ops = [
        reduce("first", 30_000),
        kernel("a", 12_000),
        Op(Kind.WAIT_STREAM, "wait", other=int(DATA)),
        kernel("b", 50_000),
        reduce("second", 30_000),
    ]
    beside = program(*ops)
    times = run(backend, beside, usual(beside, contention_q16=[0, ONE // 2]))
    # 12000 ns of kernels come after the first and before it is waited for, none after the second.
    assert (times.end - times.joined)[0].tolist() == [36_000, 36_000]
    assert (times.end - times.joined)[4].tolist() == [30_000, 30_000]


def test_a_slow_collective_that_is_hidden_costs_nothing(backend: str) -> None:
    ops = [
        reduce("sum", 20_000),
        kernel("backward", 90_000),
        Op(Kind.WAIT_STREAM, "wait", other=int(DATA), host_ns=10),
        kernel("update", 1_000),
        Op(Kind.SYNC, "loss", host_ns=10, launch_ns=10),
        Op(Kind.MARK, "end"),
    ]
    hidden = program(*ops)
    usual_end = run(backend, hidden).end[-1].copy()
    slow = run(backend, hidden, usual(hidden, transfer_q16=[[3 * ONE, ONE]]))
    assert slow.end[0].tolist() == [65_010, 65_010]
    assert slow.end[-1].tolist() == usual_end.tolist()
    exposed = run(backend, hidden, usual(hidden, transfer_q16=[[6 * ONE, ONE]]))
    assert exposed.end[0].tolist() == [125_010, 125_010]
    # backward ends at 95040, so 29970 ns of the sum are waited for.
    assert (exposed.end[-1] - usual_end).tolist() == [29_970, 29_970]


def test_synchronising_waits_for_the_stream_and_wakes_up(backend: str) -> None:
    ops = [kernel("a", 10_000), Op(Kind.SYNC, "s", host_ns=10, launch_ns=40)]
    times = run(backend, program(*ops, Op(Kind.SYNC, "t", stream=COPY, launch_ns=40)))
    assert times.host[1, 0] == 30 and times.call[1, 0] == 40
    assert times.done[1, 0] == 15_010 + 3_000
    assert times.done[2, 0] == 18_050  # nothing on that stream: the call alone


def test_threads_join_and_pause(backend: str) -> None:
    ops = [
        Op(Kind.HOST, "main", host_ns=500),
        Op(Kind.JOIN, "to", thread=Thread.AUTOGRAD, other=0, host_ns=5),
        Op(Kind.PAUSE, "pause/gc", thread=Thread.AUTOGRAD),
        Op(Kind.HOST, "more", host_ns=100),
        Op(Kind.JOIN, "from", other=1, host_ns=5),
        Op(Kind.MARK, "end"),
    ]
    one = program(*ops)
    times = run(backend, one, usual(one, pause_ns=[[0, 1_000]]))
    assert times.host[:, 1].tolist() == [0, 0, 505, 500, 600, 1_510]
    assert times.done[:, 0].tolist() == [500, 505, 505, 600, 605, 605]
    assert times.done[:, 1].tolist() == [500, 505, 1_505, 600, 1_510, 1_510]
    assert times.end[5].tolist() == [605, 1_510]


def test_marks_note_thread_and_stream(backend: str) -> None:
    ops = [Op(Kind.MARK, "begin"), kernel("a", 100), Op(Kind.MARK, "end")]
    times = run(backend, program(*ops, Op(Kind.MARK, "copied", stream=COPY)))
    assert times.done[:, 0].tolist() == [0, 30, 30, 30]
    assert times.start[:, 0].tolist() == [0, 5_010, 5_110, 30]


def test_a_rank_that_fetches_itself_waits_for_every_batch(backend: str) -> None:
    one = program(
        Op(Kind.NEXT_BATCH, "next", host_ns=10), Op(Kind.HOST, "h", host_ns=90), batches=1
    )
    given = usual(one, fetch_ns=[[400, 0]])
    times = run(backend, one, given, given)
    assert times.fetch_start[0].tolist() == [500, 100]
    assert times.ready[0].tolist() == [900, 100]
    assert times.done[0].tolist() == [910, 110]


@pytest.mark.parametrize(
    ("shape", "ready"),
    [
        # One worker, one batch ahead: it fetches the next when the last was taken.
        (LoaderShape(1, 1), [1_000, 2_000, 3_000, 4_000]),
        # One worker that may be three ahead never waits: it is the slower one all the same.
        (LoaderShape(1, 3), [1_000, 2_000, 3_000, 4_000]),
        # Two workers fetch two at a time.
        (LoaderShape(2, 1), [1_000, 1_000, 2_000, 2_100]),
        # Four workers are faster than the rank.
        (LoaderShape(4, 1), [1_000, 1_000, 1_000, 1_000]),
    ],
)
def test_workers_fetch_ahead(backend: str, shape: LoaderShape, ready: list[int]) -> None:
    """A batch takes 1000 ns to fetch and 100 ns to use."""
    one = program(Op(Kind.NEXT_BATCH, "next"), Op(Kind.HOST, "use", host_ns=100), batches=1)
    engine = Engine(one, shape, 7, backend, spread=constant())
    given = usual(one, fetch_ns=[[1_000, 1_000]])
    found = [int(engine.step(step, given).ready[0, 0]) for step in range(4)]
    assert found == ready


def test_a_worker_waits_until_a_batch_is_taken(backend: str) -> None:
    """Fetching takes 10 ns, using 1000: with one worker two ahead the third waits for the first."""
    one = program(Op(Kind.NEXT_BATCH, "next"), Op(Kind.HOST, "use", host_ns=1_000), batches=1)
    engine = Engine(one, LoaderShape(1, 2), 7, backend, spread=constant())
    given = usual(one, fetch_ns=[[10, 10]])
    starts = [int(engine.step(step, given).fetch_start[0, 0]) for step in range(5)]
    # Taken at 10, 1010, 2010, ...
    assert starts == [0, 10, 20, 1_010, 2_010]


def test_a_message_is_received_when_it_has_been_sent(backend: str) -> None:
    """Two stages, two micro-batches, forward only: the second stage waits, then is fed in time."""
    ops = []
    for m in range(2):
        ops += [
            kernel(f"{m}/first", 50_000, ranks=(0,)),
            Op(
                Kind.SEND,
                f"{m}/send",
                stream=SEND,
                launch_ns=10,
                memory_ns=8_000,
                ranks=(0,),
                peers=(1,),
            ),
            Op(
                Kind.RECV,
                f"{m}/recv",
                stream=RECV,
                other=int(RECV),
                launch_ns=10,
                memory_ns=8_000,
                ranks=(1,),
                peers=(0,),
                pair=f"{m}/send",
            ),
            Op(Kind.WAIT_STREAM, f"{m}/wait", other=int(RECV), ranks=(1,)),
            kernel(f"{m}/second", 50_000, ranks=(1,)),
        ]
    piped = program(*ops)
    times = run(backend, piped)
    at = {op.path: i for i, op in enumerate(ops)}
    # Rank 0 computes 5010-55010 and 56010-106010, and sends at once after each.
    assert times.start[at["0/send"]].tolist() == [55_010, -1]
    assert times.end[at["1/send"]].tolist() == [114_010, -1]
    assert times.joined[at["0/recv"]].tolist() == [-1, 55_010]
    assert times.end[at["0/recv"]].tolist() == [-1, 63_010]
    assert times.start[at["0/second"]].tolist() == [-1, 64_010]
    assert times.end[at["1/recv"]].tolist() == [-1, 114_010]
    # Its own first micro-batch ends at 114010, too.
    assert times.end[at["1/second"]].tolist() == [-1, 165_010]


def test_a_message_takes_the_slower_end(backend: str) -> None:
    ops = [
        Op(Kind.SEND, "send", stream=SEND, memory_ns=1_000, ranks=(0,), peers=(1,)),
        Op(Kind.RECV, "recv", stream=RECV, memory_ns=1_000, ranks=(1,), peers=(0,), pair="send"),
    ]
    one = program(*ops)
    times = run(backend, one, usual(one, transfer_q16=[[ONE, 2 * ONE]], transfer_ns=[[5, 0]]))
    assert times.end[0].tolist() == [3_005, -1]
    assert times.end[1].tolist() == [-1, 3_005]


def test_work_of_a_cpu_keeps_its_thread(backend: str) -> None:
    one = program(
        Op(Kind.INLINE, "a", host_ns=10, compute_ns=1_000), Op(Kind.HOST, "b", host_ns=10)
    )
    times = run(backend, one, usual(one, host_q16=[ONE, 2 * ONE]))
    assert times.start[0].tolist() == [10, 20]
    assert times.end[0].tolist() == times.done[0].tolist() == [1_010, 2_020]
    assert times.host[1].tolist() == [1_010, 2_020]


def test_a_core_is_lost_once_for_a_call_and_in_each_4_ms_of_work(backend: str) -> None:
    ops = [Op(Kind.HOST, "a", host_ns=10), Op(Kind.INLINE, "b", compute_ns=9_000_000)]
    one = program(*ops)
    given = usual(one, preempt_q16=[ONE, 0], preempt_ns=[1_000, 1_000])
    lost = run(backend, one, given).done - run(backend, one).done.copy()
    assert lost[0, 1] == lost[1, 1] == 0
    assert 0 < lost[0, 0] <= 1_000
    assert (lost[1, 0] - lost[0, 0]) % 2 == 0 and lost[1, 0] > lost[0, 0]  # two times as long


def test_noise_goes_with_the_path_and_not_with_the_place(backend: str) -> None:
    def times_of(*paths: str, seed: int = 7, step: int = 0) -> dict[str, list[int]]:
        ops = [kernel(path, 100_000, noise=Noise.SMALL) for path in paths]
        one = program(*ops)
        found = Engine(one, LoaderShape(0), seed, backend).step(step, usual(one))
        return {p: (found.end - found.start)[i].tolist() for i, p in enumerate(paths)}

    both = times_of("a", "b")
    assert both["a"] != both["b"] and both["a"][0] != both["a"][1]
    assert times_of("new", "b", "a")["a"] == both["a"]
    assert times_of("a", seed=8) != times_of("a") != times_of("a", step=1)


def test_noise_is_as_wide_as_it_should_be(backend: str) -> None:
    calls = {"host_ns": 10_000, "launch_ns": 20_000}
    ops = [kernel(f"k{i}", 1_000_000, noise=Noise.GEMM, **calls) for i in range(50)]
    wide = program(*ops, ranks=64)
    times = run(backend, wide, spread=ordinary())
    took, launch = times.end - times.start, np.diff(times.host, axis=0)
    assert abs(took.mean() / 1_000_000 - 1) < 0.001 and abs(took.std() / 9_000 - 1) < 0.1
    assert abs(launch.mean() / 30_000 - 1) < 0.02
    idle = times.start[0] - times.call[0]
    assert 4_000 <= idle.min() < 4_300 and 6_700 < idle.max() <= 7_000


def test_times_are_overwritten_and_columns_are_not(backend: str) -> None:
    one = program(kernel("a", 100), ranks=3)
    engine = Engine(one, LoaderShape(0), 7, backend)
    first = engine.step(0, usual(one))
    kept = columns(first, [2, 0])
    expected = first.end[:, [2, 0]].tolist()
    second = engine.step(1, usual(one))
    assert first.end is second.end
    assert kept.end.tolist() == expected


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (kernel("a", 1, ranks=(2,)), "ranks must be 0 to 1"),
        (kernel("a", 1, ranks=()), "ranks must be some"),
        (kernel("a", 1, work=2), "work must be below 2"),
        (reduce("a", 1, groups="none"), r"groups must be one of \['all'\], got 'none'"),
        (reduce("a", 1, ranks=(0,)), r"ranks \[1\] of the group \[0, 1\] must join too"),
        (Op(Kind.SEND, "a", ranks=(0,)), "peers must be one for each"),
        (Op(Kind.RECV, "a", ranks=(0,), peers=(1,), pair="b"), "must be a SEND that comes before"),
        (Op(Kind.NEXT_BATCH, "a"), "batch must be below 0"),
        (Op(Kind.JOIN, "a", other=2), "other must be below 2"),
    ],
)
def test_a_program_that_makes_no_sense_is_refused(op: Op, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Engine(program(op), LoaderShape(0), 7, "numpy")


def test_the_same_path_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a: paths must be unique"):
        Engine(program(kernel("a", 1), kernel("a", 1)), LoaderShape(0), 7, "numpy")


def test_conditions_of_another_shape_are_refused() -> None:
    one = program(kernel("a", 1))
    engine = Engine(one, LoaderShape(0), 7, "numpy")
    with pytest.raises(ValueError, match=r"host_q16 must be of shape \(2,\), got \(3,\)"):
        engine.step(0, replace(usual(one), host_q16=np.ones(3, np.int64)))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="backend must be one of"):
        Engine(program(kernel("a", 1)), LoaderShape(0), 7, "cuda")


def test_without_numba_the_engine_takes_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "injectors.sim.engine_numba", None)
    one = program(kernel("a", 1))
    assert Engine(one, LoaderShape(0), 7).backend == "numpy"
    with pytest.raises(ImportError):
        Engine(one, LoaderShape(0), 7, "numba")


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not installed")
def test_machine_code_need_not_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from injectors.sim import engine_numba

    asked = []

    def njit(*function: Any, cache: bool = False) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return function[0]

    monkeypatch.setattr(numba, "njit", njit)
    assert engine_numba._compiled(len)([1, 2]) == 2
    assert asked == [True, False]
