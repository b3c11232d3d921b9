"""Witnesses of compiler, kernel and CUDA causes on recordings made by hand."""

import gzip
import json
from itertools import count

import pandas as pd
import pytest

from cases.bundle import RunData, write_case
from cases.case import Case
from cases.documents import read_record
from cases.schema import CaseInfo, Signals
from cases.witness import holds
from injectors.faults import FAULTS

MS = 1_000_000


def trace(*events):
    """Kineto events from (name, category, start ms, length ms, stream)."""
    rows = [
        {
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": 0,
            "tid": stream,
            "ts": start * 1000,
            "dur": length * 1000,
            "args": {"stream": stream, "device": 0},
        }
        for name, category, start, length, stream in events
    ]
    header = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2}}
    return gzip.compress(json.dumps(header | {"traceEvents": rows}).encode())


def operators(**lengths_ms):
    """Ten calls of each operator."""
    return trace(
        *(
            (f"aten::{name}", "cpu_op", 1 + 100 * number + place, length, 1)
            for place, (name, length) in enumerate(lengths_ms.items())
            for number in range(10)
        )
    )


@pytest.fixture
def ask(tmp_path, tiny_suite):
    """ask(cause, now, before, **parameters): the witness on a case with these two runs."""
    number = count()
    template = read_record(next(tiny_suite.glob("c*/case.json")), CaseInfo)

    def answer(cause, now, before, **parameters):
        present = tuple(sorted(now.tables)) + (("trace_events",) if now.traces else ())
        info = template.model_copy(update={"signals": Signals(present=present, absent=())})
        folder = tmp_path / str(next(number)) / info.id
        write_case(folder, info, now.tables, now.traces, before)
        return holds(Case.open(folder), FAULTS[cause](**parameters).witness()[0])

    return answer


def steps(*durations_ms, rank=0):
    frame = pd.DataFrame({"duration_ns": [int(ms * MS) for ms in durations_ms]})
    frame["start_ns"] = frame["duration_ns"].cumsum() - frame["duration_ns"]
    return frame.assign(rank=rank, step=range(len(frame)), span=1, data_wait_ns=MS)


def runtime(*rows):
    columns = ["time_ns", "event", "duration_ns", "value", "detail"]
    return pd.DataFrame(rows, columns=columns).assign(rank=0)


def run(traces=None, **tables):
    return RunData(tables, {} if traces is None else {0: traces})


def test_churn_is_compiling_that_goes_on(ask):
    before = run(steps=steps(*[10] * 20), runtime=runtime())
    again = [(at * MS, "recompile", 20 * MS, 1, "L['stage'] == 1") for at in (60, 120, 180)]
    assert ask(
        "recompilation_churn",
        run(steps=steps(*[12] * 20), runtime=runtime(*again)),
        before,
        every=5,
    )
    once = runtime((1 * MS, "recompile", 60 * MS, 3, ""))
    assert not ask(
        "recompilation_churn", run(steps=steps(*[12] * 20), runtime=once), before, every=5
    )
    gc = runtime(*[(at * MS, "gc", 20 * MS, 2, "") for at in (60, 120, 180)])
    assert not ask("recompilation_churn", run(steps=steps(*[12] * 20), runtime=gc), before, every=5)


def test_fallback_is_functions_given_up_that_run_op_by_op(ask):
    before = run(operators(mm=1), steps=steps(10), runtime=runtime())
    told = runtime((0, "recompile_limit", None, 2, "gelu, softmax"))
    many = operators(mm=1, mul=1, tanh=1)
    cause = "recompile_limit_eager_fallback"
    assert ask(cause, run(many, steps=steps(10), runtime=told), before)
    assert not ask(cause, run(many, steps=steps(10), runtime=runtime()), before)
    assert not ask(cause, run(operators(mm=1), steps=steps(10), runtime=told), before)


def test_unfused_is_more_operators_and_fewer_fused_ones(ask):
    def job(traces, *events):
        return run(traces, steps=steps(10), runtime=runtime(*events))

    fused = [("graph_0_cpp_fused_gelu_0", "cpu_op", 1 + place, 1, 1) for place in range(10)]
    plain = [(f"aten::{name}", "cpu_op", 20 + 9 * place, 1, 1) for place, name in enumerate("abc")]
    compiled = job(trace(*fused))
    assert ask("unfused_kernels", job(trace(*fused[:2], *plain * 6)), compiled, layers=1)
    assert not ask("unfused_kernels", job(trace(*fused, *plain * 6)), compiled, layers=1)
    assert not ask("unfused_kernels", job(trace(*plain * 6)), job(trace(*plain)), layers=1)
    told = (0, "recompile_limit", None, 2, "gelu, softmax")
    given_up = job(trace(*fused[:2], *plain * 6), told)
    assert not ask("unfused_kernels", given_up, compiled, layers=1)


def sized(first_ms, later_ms):
    """Twelve sizes, each seen twice."""
    table = steps(*[first_ms] * 12, *[later_ms] * 12)
    sizes = [
        (row.start_ns + MS, "input_size", None, 40 + row.step % 12, "")
        for row in table.itertuples()
    ]
    return run(steps=table, runtime=runtime(*sizes))


def test_tuning_makes_the_first_step_of_each_size_slow(ask):
    even = sized(10, 10)
    assert ask("autotune_per_shape", sized(25, 10), even)
    assert not ask("autotune_per_shape", sized(20, 20), even)
    assert not ask("autotune_per_shape", even, even)


def test_regression_is_one_slow_operator_among_unchanged_ones(ask):
    before = run(operators(conv2d=4, relu=1, max_pool2d=1, linear=1), steps=steps(10))
    slow = run(operators(conv2d=9, relu=1, max_pool2d=1, linear=1), steps=steps(10))
    assert ask("kernel_regression", slow, before, layers=1)
    contention = run(operators(conv2d=9, relu=2.2, max_pool2d=2.2, linear=2.2), steps=steps(10))
    assert not ask("kernel_regression", contention, before, layers=1)
    taken_apart = run(operators(conv2d=9, relu=1, max_pool2d=1, linear=1, add=1), steps=steps(10))
    assert not ask("kernel_regression", taken_apart, before, layers=1)


def test_regression_has_one_mechanism():
    with pytest.raises(ValueError, match="either layers"):
        FAULTS["kernel_regression"]()
    with pytest.raises(ValueError, match="either layers"):
        FAULTS["kernel_regression"](layers=1, instructions="AVX")


def test_retries_must_go_on(ask):
    before = run(steps=steps(10), runtime=runtime())
    retries = [(at * MS, "allocator_retry", None, 2, "") for at in range(4)]
    cause = "allocator_retry_fragmentation"
    assert ask(cause, run(steps=steps(10), runtime=runtime(*retries)), before)
    assert not ask(cause, run(steps=steps(10), runtime=runtime(*retries[:1])), before)


def nccl(took_ms, *lines):
    collectives = pd.DataFrame(
        {
            "rank": [0, 1],
            "process_group": "default",
            "seq": 0,
            "created_ns": 0,
            "completed_ns": int(took_ms * MS),
        }
    )
    logs = pd.DataFrame(
        {"rank": 0, "time_ns": 0, "message": [f"NCCL INFO {line}" for line in lines]}
    )
    return run(steps=steps(10), collectives=collectives, logs=logs)


P2P = "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"
SHM = "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"
SOCKET = "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"
PROTOCOL = "NCCL_PROTO set by environment to LL"


def test_each_fault_of_nccl_asks_for_its_own_line(ask):
    healthy = nccl(2, P2P)
    runs = {
        "nccl_transport_fallback": nccl(9, SOCKET),
        "nccl_p2p_disabled": nccl(5, SHM),
        "nccl_tuning_regression": nccl(3, P2P, PROTOCOL),
    }
    for cause in runs:
        found = {name: ask(cause, other, healthy) for name, other in runs.items()}
        assert found == {name: name == cause for name in runs}
        assert not ask(cause, healthy, healthy)
    assert not ask("nccl_tuning_regression", nccl(2, P2P, PROTOCOL), healthy), "costs nothing"


def streams(beside_ms, alone_ms):
    """A collective under a compute kernel of another stream, and one on its own."""
    return run(
        trace(
            ("ampere_sgemm", "kernel", 10, 50, 7),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", 12, beside_ms, 9),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", 200, alone_ms, 9),
        ),
        steps=steps(10),
    )


def test_contention_lengthens_only_collectives_beside_compute(ask):
    healthy = streams(4, 4)
    assert ask("nccl_sm_contention", streams(12, 4), healthy)
    assert not ask("nccl_sm_contention", streams(12, 12), healthy), "that is the network"
    assert not ask("nccl_sm_contention", healthy, healthy)
