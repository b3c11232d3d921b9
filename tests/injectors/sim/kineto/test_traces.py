"""Whole traces of the hand-made run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.kineto import parse_trace
from injectors.sim.kineto import Within, gates, write_traces
from injectors.sim.program import Label
from tests.injectors.sim.kineto.conftest import TinyRun, tiny, unpacked

CLOCK_US = 13.0  # by which a device's clock may be off
WANDER_US = 0.6  # by which it wanders meanwhile, in a step of 200 us
DRIFT_US = 0.002  # by which the only host's clock is, so early
Trace = dict[str, Any]


def named(trace: Trace, name: str, category: str) -> dict[str, Any]:
    """Return the first step's event of a name."""
    found: dict[str, Any] = next(
        e for e in trace["traceEvents"] if e["name"] == name and e.get("cat") == category
    )
    return found


def test_our_reader_drops_nothing(tiny_run: TinyRun) -> None:
    for rank, packed in write_traces(tiny_run, (0, 1)).items():
        trace = parse_trace(packed)
        assert trace.dropped == {}
        assert (trace.rank, trace.world_size) == (rank, 2)
        assert trace.counts["flow_starts"] == trace.counts["flow_ends"]
        assert set(trace.events["step"].dropna()) == {3, 4}


def test_all_gates_are_passed(tiny_run: TinyRun) -> None:
    traces = {rank: unpacked(one) for rank, one in write_traces(tiny_run, (0, 1)).items()}
    assert [p for trace in traces.values() for p in gates.problems(trace)] == []
    assert list(gates.apart(traces)) == []


def test_calls_and_kernels_are_when_the_engine_says(tiny_trace: Trace) -> None:
    call = named(tiny_trace, "cudaLaunchKernel", "cuda_runtime")
    kernel = named(tiny_trace, "sm90_gemm", "kernel")
    assert call["ts"] == pytest.approx(60.0, abs=DRIFT_US)
    assert 5.0 <= call["dur"] < 6.0  # 6 us less the moments until the operators return
    assert abs(kernel["ts"] - 65.0) < CLOCK_US
    assert abs(kernel["dur"] - 30.0) <= WANDER_US


def test_operators_enclose_what_they_launch(tiny_trace: Trace) -> None:
    linear, addmm = (named(tiny_trace, f"aten::{name}", "cpu_op") for name in ("linear", "addmm"))
    call = named(tiny_trace, "cudaLaunchKernel", "cuda_runtime")
    ends = [event["ts"] + event["dur"] for event in (call, addmm, linear)]
    assert 40 < linear["ts"] < addmm["ts"] < call["ts"]
    assert ends == sorted(ends)
    assert ends[-1] < 66
    assert addmm["args"]["Input Dims"] == [[8, 16], [16, 4]]
    assert call["args"]["External id"] == addmm["args"]["External id"]


def test_kernels_carry_what_tools_ask_for(tiny_trace: Trace) -> None:
    call = named(tiny_trace, "cudaLaunchKernel", "cuda_runtime")
    args = named(tiny_trace, "sm90_gemm", "kernel")["args"]
    assert args["correlation"] == call["args"]["correlation"]
    assert args["External id"] == call["args"]["External id"]
    assert (args["device"], args["stream"], args["context"], args["queued"]) == (0, 7, 1, 0)
    assert (args["grid"], args["blocks per SM"], args["warps per SM"]) == ([264, 1, 1], 2, 8)
    assert (args["registers per thread"], args["shared memory"]) == (168, 49152)
    assert args["est. achieved occupancy %"] == 13


def test_rank_1_uses_its_own_device(tiny_run: TinyRun) -> None:
    trace = unpacked(write_traces(tiny_run, (1,))[1])
    kernel = named(trace, "sm90_gemm", "kernel")
    assert (kernel["pid"], kernel["args"]["device"]) == (1, 1)
    tiny_run.job.gpus.device_of[1] = 0
    shared = unpacked(write_traces(tiny_run, (1,))[1])
    assert named(shared, "sm90_gemm", "kernel")["pid"] == 0


def test_collectives_say_what_they_move(tiny_trace: Trace) -> None:
    kernel = named(tiny_trace, "ncclDevKernel_AllReduce", "kernel")
    record = named(tiny_trace, "record_param_comms", "cpu_op")
    for args in (kernel["args"], record["args"]):
        assert args["Collective name"] == "allreduce"
        assert (args["In msg nelems"], args["Group size"], args["dtype"]) == (2048, 2, "BFloat16")
        assert (args["Process Group Name"], args["Process Group Ranks"]) == ("0", "[0, 1]")
        assert args["Seq"] == 3  # the fourth step's first
    assert named(tiny_trace, "nccl:all_reduce", "user_annotation")["tid"] == record["tid"]
    shown = named(tiny_trace, "nccl:all_reduce", "gpu_user_annotation")
    assert shown["ts"] == pytest.approx(kernel["ts"] - 0.001)
    assert shown["dur"] == pytest.approx(kernel["dur"] + 0.002)


def test_backward_is_tied_to_forward(tiny_trace: Trace) -> None:
    forward = named(tiny_trace, "aten::linear", "cpu_op")
    inner = named(tiny_trace, "AddmmBackward0", "cpu_op")
    outer = named(tiny_trace, "autograd::engine::evaluate_function: AddmmBackward0", "cpu_op")
    numbers = {event["args"]["Sequence number"] for event in (forward, inner, outer)}
    assert len(numbers) == 1
    assert outer["ts"] < inner["ts"]
    arrows = [e for e in tiny_trace["traceEvents"] if e.get("cat") == "fwdbwd"][:2]
    by_phase = {e["ph"]: e for e in arrows}
    assert (by_phase["s"]["ts"], by_phase["s"]["tid"]) == (forward["ts"], forward["tid"])
    assert (by_phase["f"]["ts"], by_phase["f"]["tid"]) == (inner["ts"], inner["tid"])


def test_waiting_is_recorded(tiny_trace: Trace) -> None:
    wait = named(tiny_trace, "Stream Wait Event", "cuda_sync")
    record = next(
        e for e in tiny_trace["traceEvents"]
        if e["name"] == "cudaEventRecord" and e["tid"] == 8
    )  # fmt: skip
    assert (wait["args"]["stream"], wait["args"]["wait_on_stream"]) == (7, 20)
    recorded = wait["args"]["wait_on_cuda_event_record_corr_id"]
    assert recorded == record["args"]["correlation"]
    sync = named(tiny_trace, "cudaStreamSynchronize", "cuda_runtime")
    assert sync["ts"] == pytest.approx(148.0, abs=DRIFT_US)
    assert 46 < sync["dur"] < 48


def test_copies_tell_their_rate(tiny_trace: Trace) -> None:
    copy = named(tiny_trace, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy")
    rate = copy["args"]["memory bandwidth (GB/s)"]
    assert rate == pytest.approx(4 / (1000 * copy["dur"]), abs=1e-6)
    item = named(tiny_trace, "aten::item", "cpu_op")
    assert copy["args"]["External id"] == item["args"]["External id"]


def test_launches_in_a_range_are_shown_on_the_device_too(tiny_trace: Trace) -> None:
    shown = named(tiny_trace, "DistributedDataParallel.forward", "gpu_user_annotation")
    kernel = named(tiny_trace, "sm90_gemm", "kernel")
    assert shown["ts"] == pytest.approx(kernel["ts"] - 0.001)
    step = named(tiny_trace, "ProfilerStep#3", "gpu_user_annotation")
    assert step["ts"] > kernel["ts"]  # only the copy is in no range of its own


def test_steps_are_named_only_where_asked(tiny_run: TinyRun) -> None:
    trace = unpacked(write_traces(tiny_run, (0,), with_steps=False)[0])
    assert not any("ProfilerStep" in event["name"] for event in trace["traceEvents"])
    assert list(gates.problems(trace)) == []


def test_a_later_engine_s_ranks_have_their_own_numbers(tiny_run: TinyRun) -> None:
    trace = unpacked(write_traces(tiny_run, (1,), within=Within(4, 6))[1])
    info = trace["distributedInfo"]
    assert (info["rank"], info["world_size"]) == (5, 6)
    assert info["pg_config"][0]["ranks"] == [4, 5]
    assert named(trace, "sm90_gemm", "kernel")["args"]["device"] == 1  # on a host of its own


def test_the_header_names_device_and_groups(tiny_run: TinyRun) -> None:
    tiny_run.job.versions["nccl"] = "2.27.3"
    trace = unpacked(write_traces(tiny_run, (1,))[1])
    assert trace["schemaVersion"] == 1
    assert trace["baseTimeNanoseconds"] == 0
    assert len(trace["deviceProperties"]) == 8
    assert trace["deviceProperties"][0]["numSms"] == 132
    info = trace["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"]) == ("nccl", 1, 2)
    assert info["pg_config"][0]["ranks"] == [0, 1]
    assert info["nccl_version"] == "2.27.3"
    last = trace["traceEvents"][-1]
    assert last["name"] == "Record Window End"
    assert last["ts"] > max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X")


def test_bytes_are_the_same_again_and_whoever_else_is_written(tiny_run: TinyRun) -> None:
    both = write_traces(tiny_run, (0, 1))
    assert write_traces(tiny(), (0, 1)) == both
    alone = write_traces(tiny_run, (1,))[1]
    assert unpacked(alone) == unpacked(both[1])


def test_both_backends_write_the_same_bytes(tiny_run: TinyRun) -> None:
    pytest.importorskip("numba")
    compiled, plain = (
        write_traces(tiny_run, (0, 1), backend=backend) for backend in ("numba", "numpy")
    )
    assert compiled == plain


def test_gzip_holds_no_date(tiny_run: TinyRun) -> None:
    packed = write_traces(tiny_run, (0,))[0]
    assert packed[:3] == b"\x1f\x8b\x08"
    assert packed[3:8] == bytes(5)


def test_what_was_not_done_is_not_there(tiny_run: TinyRun) -> None:
    place = next(i for i, op in enumerate(tiny_run.program.ops) if op.path == "forward")
    for name in ("host", "call", "done", "start", "end"):
        getattr(tiny_run.kept[4], name)[place] = -1
    trace = unpacked(write_traces(tiny_run, (0,))[0])
    kernels = [e for e in trace["traceEvents"] if e["name"] == "sm90_gemm"]
    assert len(kernels) == 1
    assert len([e for e in trace["traceEvents"] if e["name"] == "sm90_back"]) == 2


def test_a_blocking_launch_lasts_until_the_work_is_done(tiny_run: TinyRun) -> None:
    ops = tiny_run.program.ops
    sync = next(i for i, op in enumerate(ops) if op.path == "sync")
    ops[sync] = replace(ops[sync], label=Label(kernel=None, runtime=None))
    trace = unpacked(write_traces(tiny_run, (0,))[0])
    call = named(trace, "cudaMemcpyAsync", "cuda_runtime")
    assert call["ts"] == pytest.approx(140.0, abs=DRIFT_US)
    assert 194 < call["ts"] + call["dur"] < 196
    assert not any(e["name"] == "cudaStreamSynchronize" for e in trace["traceEvents"])


def test_on_cpus_gloo_has_threads_of_its_own() -> None:
    trace = unpacked(write_traces(tiny("cpu"), (0,))[0])
    categories = {event.get("cat") for event in trace["traceEvents"]}
    assert categories == {None, "cpu_op", "user_annotation", "fwdbwd", "Trace"}
    reduced = named(trace, "gloo:all_reduce", "user_annotation")
    ends = reduced["ts"], reduced["ts"] + reduced["dur"]
    assert ends == pytest.approx((131.0, 190.0), abs=DRIFT_US)
    asked = named(trace, "c10d::allreduce_", "cpu_op")
    assert asked["tid"] == asked["pid"] == 1
    assert reduced["tid"] != 1
    assert trace["distributedInfo"]["backend"] == "gloo"
    assert trace["deviceProperties"] == []


def test_few_records_are_lost_and_always_with_their_arrow() -> None:
    run = tiny()
    launch = next(op for op in run.program.ops if op.path == "forward")
    copies = 10_000
    run.program.ops = [
        replace(launch, path=f"forward/{i}", label=replace(launch.label, sequence=None))
        for i in range(copies)
    ]
    run.program.spans = []
    for step, kept in run.kept.items():
        for name in ("host", "call", "done", "start", "end"):
            row = getattr(kept, name)[2] + 100_000 * np.arange(copies)[:, None]
            setattr(kept, name, row + 200_000 * copies * step)
    trace = unpacked(write_traces(run, (0,))[0])
    events = trace["traceEvents"]
    kernels = sum(e.get("cat") == "kernel" for e in events)
    calls = sum(e["name"] == "cudaLaunchKernel" for e in events)
    assert 0 < 2 * copies - kernels < 40
    assert 0 < 2 * copies - calls < 40
    assert list(gates.problems(trace)) == []
