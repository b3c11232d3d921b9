"""Events of an op on host threads: operators, arrows between them, ranges around collectives."""

from __future__ import annotations

from typing import Any, Literal

from injectors.sim.kineto import calls, lanes
from injectors.sim.kineto.collectives import described
from injectors.sim.kineto.events import arguments, complete, flow
from injectors.sim.kineto.operators import Placed
from injectors.sim.kineto.parts import Number, Parts, Point, Segment, Slot, end_of, start_of
from injectors.sim.kineto.seen import RECORD, Seen

RANGE_BEGINS = 3  # calls of a collective that come before the range around it


def host_events(seen: Seen) -> tuple[list[Parts], int, int | None]:
    """Write an op's events; returns too how many ids they take, and the launching operator's."""
    operators = seen.operators()
    launcher = max((found.number for found in operators if found.depth is not None), default=None)
    events: list[Parts] = []
    for operator in operators:
        events.append(_operator(seen, operator, operator.number == launcher))
        if operator.depth == 0 and seen.role:
            way: Literal["s", "f"] = "s" if seen.role == "forward" else "f"
            events.append(flow(way, "fwdbwd", Number(Slot.FLOW), seen.lane, operator.first))
    if seen.collective is None:
        return events, len(operators), launcher
    return [*events, _range(seen, len(operators))], len(operators) + 1, launcher


def _operator(seen: Seen, operator: Placed, launches: bool) -> Parts:
    args: dict[str, Any] = {"External id": Number(Slot.ID, operator.number)}
    if operator.depth == 0 and seen.role:
        args["Sequence number"] = Number(Slot.SEQUENCE)
        args["Fwd thread id"] = int(seen.role == "backward")
    if operator.name == RECORD and seen.collective is not None and seen.group is not None:
        args |= described(seen.collective, seen.group, seen.ends)
    elif launches and seen.label.dims:
        args["Input type"] = [seen.label.dtype] * len(seen.label.dims)
        args["Input Dims"] = seen.label.dims
    ends = operator.first, operator.last
    return complete("cpu_op", operator.name, seen.lane, *ends, arguments(args))


def _range(seen: Seen, number: int) -> Parts:
    """The range that c10d puts around a collective; gloo's lies on a thread of its own."""
    first, last, lane = start_of(Segment.DEVICE), end_of(Segment.DEVICE), lanes.gloo(seen.op.stream)
    if seen.gpu is not None:
        first = Point(Segment.HOST, seen.place_q16(RANGE_BEGINS, calls.CALLS_BEFORE))
        last, lane = end_of(Segment.CALL), seen.lane
    args = arguments({"External id": Number(Slot.ID, number)})
    return complete("user_annotation", seen.range_name(), lane, first, last, args)
