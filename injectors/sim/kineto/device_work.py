"""Events of the device: kernels, copies and fills with the arguments that CUPTI gives them."""

from __future__ import annotations

from math import prod
from typing import Any

from injectors.sim.kineto.events import Lane, arguments, complete, flow
from injectors.sim.kineto.parts import Number, Parts, Rate, Segment, Slot, end_of, start_of
from injectors.sim.machine import Gpu
from injectors.sim.program import Label

WARP, MAX_WARPS, MAX_BLOCKS, REGISTERS = 32, 64, 32, 65536
SHARED_BYTES = {"ampere": 167_936, "sm90": 233_472}  # of a multiprocessor
MILLION = 10**6
BEGIN, FINISH = start_of(Segment.DEVICE), end_of(Segment.DEVICE)


def occupancy_percent(label: Label, gpu: Gpu) -> int:
    """Estimate the occupancy as Kineto does: warps that fit on a multiprocessor, of 64.

    >>> from injectors.sim.machine import GPUS
    >>> occupancy_percent(Label(grid=(1024, 1, 1), block=(128, 1, 1), registers=16), GPUS["a100"])
    59
    """
    warps = -(-prod(label.block) // WARP)
    limits = [
        MAX_BLOCKS,
        MAX_WARPS // warps,
        REGISTERS // (WARP * warps * -(-label.registers // 8) * 8),
    ]
    if label.shared_bytes:
        limits.append(SHARED_BYTES[gpu.kernels] // label.shared_bytes)
    blocks = prod(label.grid)
    resident = min(max(min(limits), 0) * gpu.multiprocessors, blocks)
    return round_half_up(100 * resident * warps, gpu.multiprocessors * MAX_WARPS)


def round_half_up(dividend: int, divisor: int) -> int:
    """Divide whole numbers >= 0 and round."""
    return (2 * dividend + divisor) // (2 * divisor)


def device_event(label: Label, gpu: Gpu, lane: Lane, offset: int, more: dict[str, Any]) -> Parts:
    """Write what the device does for an op; `more` are arguments of its own."""
    rate: Parts = []
    if label.category == "kernel":
        args = _placed(lane, offset, {"queued": 0}) | _launch_shape(label, gpu) | more
    else:
        args = _placed(lane, offset, {}) | {"bytes": label.bytes}
        rate = [',"memory bandwidth (GB/s)":', Rate(label.bytes, BEGIN, FINISH)]
    written = [*arguments(args), *rate]
    return complete(label.category, label.kernel or "kernel", lane, BEGIN, FINISH, written)


def arrives(lane: Lane, offset: int) -> Parts:
    """Write the end of the arrow from the call that launched."""
    return flow("f", "ac2g", Number(Slot.CORRELATION, offset), lane, BEGIN)


def _placed(lane: Lane, offset: int, first: dict[str, Any]) -> dict[str, Any]:
    """Where it ran, and who asked for it."""
    return {
        "External id": Number(Slot.LINK),
        **first,
        "device": Number(Slot.DEVICE),
        "context": 1,
        "stream": lane.thread,
        "correlation": Number(Slot.CORRELATION, offset),
    }


def _launch_shape(label: Label, gpu: Gpu) -> dict[str, Any]:
    blocks = round_half_up(prod(label.grid) * MILLION, gpu.multiprocessors)
    warps = blocks * -(-prod(label.block) // WARP)
    return {
        "registers per thread": label.registers,
        "shared memory": label.shared_bytes,
        "blocks per SM": blocks / MILLION,
        "warps per SM": warps / MILLION,
        "grid": list(label.grid),
        "block": list(label.block),
        "est. achieved occupancy %": occupancy_percent(label, gpu),
    }
