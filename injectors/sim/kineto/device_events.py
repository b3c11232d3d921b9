"""Events of an op that CUPTI records: calls, waiting, and the work of the device."""

from __future__ import annotations

from typing import Any

from injectors.sim.kineto import calls, lanes
from injectors.sim.kineto.collectives import described
from injectors.sim.kineto.device_work import arrives, device_event
from injectors.sim.kineto.events import arguments, complete
from injectors.sim.kineto.parts import ONE, Number, Parts, Point, Segment, Slot, end_of, start_of
from injectors.sim.kineto.seen import Seen
from injectors.sim.kineto.synchronisation import synchronised, waits
from injectors.sim.program import Kind, Stream

FIRST, LAST = start_of(Segment.CALL), end_of(Segment.CALL)
TAIL_PLACES = 16  # into which the time after a launch is divided for the calls after it


def device_events(seen: Seen, ids: int) -> list[Parts]:
    """Write an op's events; `ids` is how many ids those on the host took.

    The first four of a launch are the kernel and the end of its arrow, the call and its begin.
    """
    if seen.gpu is None:
        return []
    around, offset = calls.beside(seen.op.kind, seen.runtime is not None)
    before = [call for call in around if call.before]
    events: list[Parts] = []
    for place, call in enumerate(before):
        events.append(
            calls.call(call.name, seen.lane, *_before(seen, place, len(before)), call.offset)
        )
    if seen.works_on_device:
        events += _work(seen, offset)
    if seen.runtime is not None:
        events += _call(seen, seen.runtime, offset)
    for place, call in enumerate(around[len(before) :]):
        events.append(calls.call(call.name, seen.lane, *_after(place), call.offset))
    if seen.collective is not None:
        events.append(_range(seen, ids - 1))
    return events


def _before(seen: Seen, place: int, count: int) -> tuple[Point, Point]:
    """Ends of a call before the main one, in the middle of its room."""
    begins, ends = seen.place_q16(place, count), seen.place_q16(place + 1, count)
    quarter = (ends - begins) // 4
    return Point(Segment.HOST, begins + quarter), Point(Segment.HOST, ends - quarter)


def _after(place: int) -> tuple[Point, Point]:
    at = (2 * place + 1) * ONE // TAIL_PLACES
    return Point(Segment.TAIL, at), Point(Segment.TAIL, at + ONE * 3 // (2 * TAIL_PLACES))


def _work(seen: Seen, offset: int) -> list[Parts]:
    assert seen.gpu is not None
    lane = lanes.stream(seen.op.stream)
    more: dict[str, Any] = {}
    if seen.collective is not None and seen.group is not None:
        more = described(seen.collective, seen.group, seen.ends)
    return [device_event(seen.label, seen.gpu, lane, offset, more), arrives(lane, offset)]


def _call(seen: Seen, name: str, offset: int) -> list[Parts]:
    """The main call, and what it waits for."""
    main = calls.call(name, seen.lane, FIRST, LAST, offset)
    arrow = calls.launched(seen.lane, FIRST, offset)
    lane = lanes.stream(seen.op.stream)
    if seen.op.kind == Kind.WAIT_STREAM:
        return [main, arrow, *waits(lane, lanes.stream(Stream(seen.op.other)), offset)]
    if seen.op.kind == Kind.SYNC:
        return [main, arrow, *synchronised(name, lane, offset)]
    return [main, arrow] if seen.works_on_device else [main]


def _range(seen: Seen, number: int) -> Parts:
    """The range around a collective once more, where its kernel runs."""
    first, last = Point(Segment.DEVICE, 0, 0, -1), Point(Segment.DEVICE, ONE, 0, 1)
    args = arguments({"External id": Number(Slot.ID, number)})
    lane = lanes.stream(seen.op.stream)
    return complete("gpu_user_annotation", seen.range_name(), lane, first, last, args)
