"""What CUPTI records of waiting: a stream for another one's event, a thread for a stream."""

from __future__ import annotations

from typing import Any

from injectors.sim.kineto.calls import WAIT_CALL
from injectors.sim.kineto.events import Lane, arguments, complete, flow
from injectors.sim.kineto.parts import Number, Parts, Segment, Slot, end_of, start_of

FIRST, LAST = start_of(Segment.CALL), end_of(Segment.CALL)
WHOLE_DEVICE = -1


def waits(waiting: Lane, awaited: Lane, offset: int) -> list[Parts]:
    """Write that a stream waits for what had been recorded on another."""
    recorded = Number(Slot.CORRELATION, offset - WAIT_CALL)
    more = {
        "wait_on_stream": awaited.thread,
        "wait_on_cuda_event_record_corr_id": recorded,
        "wait_on_cuda_event_id": waiting.thread * 64 + awaited.thread,
    }
    return _sync("Stream Wait Event", waiting, waiting.thread, offset, more)


def synchronised(runtime: str, lane: Lane, offset: int) -> list[Parts]:
    """Write that a thread waited for a stream, or for the whole device."""
    if runtime == "cudaDeviceSynchronize":
        return _sync("Context Sync", Lane(None, abs(WHOLE_DEVICE)), WHOLE_DEVICE, offset, {})
    return _sync("Stream Sync", lane, lane.thread, offset, {})


def _sync(kind: str, lane: Lane, stream: int, offset: int, more: dict[str, Any]) -> list[Parts]:
    args = {
        "External id": Number(Slot.LINK),
        "cuda_sync_kind": kind,
        **more,
        "stream": stream,
        "correlation": Number(Slot.CORRELATION, offset),
        "device": Number(Slot.DEVICE),
        "context": 1,
    }
    event = complete("cuda_sync", kind, lane, FIRST, LAST, arguments(args))
    return [event, flow("f", "ac2g", Number(Slot.CORRELATION, offset), lane, FIRST)]
