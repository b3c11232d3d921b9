"""What a trace's JSON holds, as msgspec structs: one per phase of event.

Flow and metadata events, a third of a trace, have structs without fields, so that they cost
neither strings nor numbers. Fields that are not listed are skipped unread. Fields stand in
the order in which Kineto writes them, because msgspec looks for the next one first.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

NONE = -(2**63)
"""Stands for "no number" until the columns are built; no trace can mean it."""

Number: TypeAlias = int | str | None


class Args(msgspec.Struct, gc=False, frozen=True):
    """Arguments of a complete event that become columns."""

    external_id: Number = msgspec.field(name="External id", default=NONE)
    device: Number = NONE
    stream: Number = NONE
    correlation: Number = NONE
    external_id_2021: Number = msgspec.field(name="external id", default=NONE)
    bytes: Number = NONE
    sequence_number: Number = msgspec.field(name="Sequence number", default=NONE)
    collective: str | None = msgspec.field(name="Collective name", default=None)
    process_group: str | None = msgspec.field(name="Process Group Name", default=None)
    group_size: Number = msgspec.field(name="Group size", default=NONE)
    dtype: str | None = None
    in_elements: Number = msgspec.field(name="In msg nelems", default=NONE)


class InstantArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments of an instant event that become columns: those of [memory]."""

    device: Number = msgspec.field(name="Device Id", default=NONE)
    bytes: Number = msgspec.field(name="Bytes", default=NONE)


NO_ARGS, NO_INSTANT_ARGS = Args(), InstantArgs()


class Complete(msgspec.Struct, gc=False, kw_only=True, tag_field="ph", tag="X"):
    """A range. Times in microseconds."""

    cat: str | None = None
    name: str
    pid: int | str = ""
    tid: int | str = ""
    ts: float
    dur: float
    args: Args | None = NO_ARGS


class Instant(msgspec.Struct, gc=False, tag_field="ph", tag="i"):
    """A moment. Time in microseconds."""

    name: str
    ts: float
    cat: str | None = None
    pid: int | str = ""
    tid: int | str = ""
    args: InstantArgs | None = NO_INSTANT_ARGS


class OldInstant(Instant, gc=False, tag_field="ph", tag="I"):
    """The spelling of an instant event before 2015."""


class FlowStart(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    """Begin of an arrow; counted, not read."""


class FlowStep(msgspec.Struct, gc=False, tag_field="ph", tag="t"):
    """Middle of an arrow; counted, not read."""


class FlowEnd(msgspec.Struct, gc=False, tag_field="ph", tag="f"):
    """End of an arrow; counted, not read."""


class Metadata(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    """Name or order of a track; counted, not read."""


class Counter(msgspec.Struct, gc=False, tag_field="ph", tag="C"):
    """A counter's sample; counted, not read."""


Event: TypeAlias = (
    Complete | Instant | OldInstant | FlowStart | FlowStep | FlowEnd | Metadata | Counter
)
COUNTED: dict[str, type[msgspec.Struct]] = {
    "flow_starts": FlowStart,
    "flow_steps": FlowStep,
    "flow_ends": FlowEnd,
    "metadata": Metadata,
    "counters": Counter,
}


class Header(msgspec.Struct, kw_only=True):
    """What stands beside the events."""

    baseTimeNanoseconds: int = 0  # noqa: N815 (Kineto's name)
    distributedInfo: dict[str, Any] | None = None  # noqa: N815
    schemaVersion: Any = msgspec.UNSET  # noqa: N815
    deviceProperties: Any = msgspec.UNSET  # noqa: N815
    displayTimeUnit: Any = msgspec.UNSET  # noqa: N815
    record_shapes: Any = msgspec.UNSET
    profile_memory: Any = msgspec.UNSET
    with_stack: Any = msgspec.UNSET
    with_flops: Any = msgspec.UNSET
    with_modules: Any = msgspec.UNSET
    cuda_runtime_version: Any = msgspec.UNSET
    cuda_driver_version: Any = msgspec.UNSET
    cupti_version: Any = msgspec.UNSET
    roctracer_version: Any = msgspec.UNSET
    hip_runtime_version: Any = msgspec.UNSET
    hip_driver_version: Any = msgspec.UNSET


class Document(Header):
    """A whole trace; an event may be null."""

    traceEvents: list[Event | None]  # noqa: N815


class Apart(Header):
    """A whole trace whose events are left undecoded."""

    traceEvents: list[msgspec.Raw]  # noqa: N815
