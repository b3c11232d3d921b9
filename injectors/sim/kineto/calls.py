"""Calls of the CUDA runtime and driver: their numbers, and those that go along with a launch."""

from __future__ import annotations

from typing import Any, NamedTuple

from injectors.sim.kineto.events import Lane, arguments, complete, flow
from injectors.sim.kineto.parts import Number, Parts, Point, Slot
from injectors.sim.program import Kind

CALLBACKS = {
    "cudaFuncGetAttributes": 15,
    "cudaMalloc": 20,
    "cudaFree": 22,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceSynchronize": 165,
    "cudaLaunchKernel": 211,
    "cuLaunchKernel": 307,
    "cudaGraphLaunch": 311,
    "cudaStreamIsCapturing": 317,
    "cudaStreamGetCaptureInfo_v2": 409,
    "cudaLaunchKernelExC": 430,
    "cuLaunchKernelEx": 652,
}
DEFAULT = {
    Kind.KERNEL: "cudaLaunchKernel",
    Kind.SYNC: "cudaStreamSynchronize",
    Kind.WAIT_STREAM: "cudaStreamWaitEvent",
}


class Beside(NamedTuple):
    """A call before (or after) the main one: its correlation, counted from the op's first."""

    name: str
    offset: int
    before: bool = True


# What ProcessGroupNCCL calls around its launch, and where among the op's correlations.
AROUND_COLLECTIVE = (
    Beside("cudaStreamIsCapturing", 0),
    Beside("cudaEventRecord", 2),
    Beside("cudaStreamWaitEvent", 6),
    Beside("cudaStreamGetCaptureInfo_v2", 9),
    Beside("cudaEventRecord", 12),
    Beside("cudaStreamWaitEvent", 13),
    Beside("cudaEventRecord", 17, before=False),
    Beside("cudaEventRecord", 22, before=False),
)
CALLS_BEFORE = sum(call.before for call in AROUND_COLLECTIVE)
COLLECTIVE_LAUNCH = 15
AROUND_WAIT = (Beside("cudaEventRecord", 0),)
WAIT_CALL = 3
RECORDED = 12  # the record that the transfer's stream waits for


def beside(kind: Kind, calls: bool) -> tuple[tuple[Beside, ...], int]:
    """Return the calls beside the main one of a kind of op, and the main one's own offset."""
    if not calls:
        return (), 0
    if kind in (Kind.COLLECTIVE, Kind.SEND, Kind.RECV):
        return AROUND_COLLECTIVE, COLLECTIVE_LAUNCH
    if kind == Kind.WAIT_STREAM:
        return AROUND_WAIT, WAIT_CALL
    return (), 0


def call(name: str, lane: Lane, first: Point, last: Point, offset: int) -> Parts:
    """Write a runtime (or driver) call with the `offset`-th correlation of its op."""
    args: dict[str, Any] = {"External id": Number(Slot.LINK)}
    if name in CALLBACKS:
        args["cbid"] = CALLBACKS[name]
    args["correlation"] = Number(Slot.CORRELATION, offset)
    category = "cuda_driver" if name.startswith("cuL") else "cuda_runtime"
    return complete(category, name, lane, first, last, arguments(args))


def launched(lane: Lane, at: Point, offset: int) -> Parts:
    """Write the begin of the arrow from a call to what it launches."""
    return flow("s", "ac2g", Number(Slot.CORRELATION, offset), lane, at)
