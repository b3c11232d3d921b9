"""Named ranges as events: on the thread that goes through them, and where their kernels run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from injectors.sim.kineto import lanes
from injectors.sim.kineto.events import arguments, complete, flow
from injectors.sim.kineto.pairing import STEP_NAME
from injectors.sim.kineto.parts import ONE, Number, Part, Parts, Point, Segment, Slot
from injectors.sim.kineto.shapes import Shape, shape_of
from injectors.sim.program import Stream, Thread

DEEPEST = 16
BEGIN_Q16 = 256  # how much later a range begins than the one around it, of the op's host time
END_Q16 = ONE * 3 // 8  # over how much of the op's last moments ranges end; none touches the next
STEP_GAP_NS = 12
Carries = Literal["", "sequence", "flow"]


@lru_cache(maxsize=5_000)
def span_shape(
    name: str, category: str, thread: int, depth: int, on_gpu: bool, carries: Carries
) -> Shape:
    """Make the event of a range from its first op's begin to its last op's end.

    Args:
        name: As it is shown.
        category: Kineto's.
        thread: Number of the host thread.
        depth: Ranges around it.
        on_gpu: Whether the job has GPUs.
        carries: Whether it shows the sequence number of what is inside, and the arrow to it.
    """
    depth = min(depth, DEEPEST - 1)
    # A step begins as the last one ends, where ranges that touch would be taken to overlap.
    nudge_ns = STEP_GAP_NS if name == STEP_NAME else 0
    first = Point(Segment.HOST, (depth + 1) * BEGIN_Q16, nudge_ns=nudge_ns)
    last = Point(Segment.TAIL, ONE // 2 + END_Q16 * (DEEPEST - depth) // DEEPEST, of=1)
    lane = lanes.thread(Thread(thread), on_gpu)
    args: dict[str, Any] = {"External id": Number(Slot.ID)}
    if category == "python_function":
        args["Python id"] = Number(Slot.ID)
    if carries:
        args |= {"Sequence number": Number(Slot.SEQUENCE), "Fwd thread id": 1}
    event = complete(category, _name(name), lane, first, last, arguments(args))
    if carries == "flow":
        return shape_of([event, flow("f", "fwdbwd", Number(Slot.FLOW), lane, first)])
    return shape_of([event])


@lru_cache(maxsize=2_000)
def device_span_shape(name: str, stream: Stream) -> Shape:
    """Make the event of a range from its first kernel on a stream to its last one."""
    first, last = Point(Segment.DEVICE, 0, 0, -1), Point(Segment.DEVICE, ONE, 1, 1)
    args = arguments({"External id": Number(Slot.ID)})
    lane = lanes.stream(stream)
    return shape_of([complete("gpu_user_annotation", _name(name), lane, first, last, args)])


def _name(name: str) -> str | Parts:
    """Steps are numbered."""
    numbered: list[Part] = [name, Number(Slot.STEP)]
    return numbered if name == STEP_NAME else name
