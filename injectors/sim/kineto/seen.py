"""One op as a rank sees it: what its events are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from injectors.sim.kineto import calls, lanes
from injectors.sim.kineto.collectives import Ends, Group, range_name
from injectors.sim.kineto.events import Lane
from injectors.sim.kineto.operators import ENGINE_Q16, PYTHON_Q16, Placed, placed
from injectors.sim.kineto.parts import ONE
from injectors.sim.machine import Gpu
from injectors.sim.program import Collective, Kind, Label, Op, Thread

Role = Literal["", "forward", "backward"]
COMMUNICATION = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)
WAITING = (Kind.HOST, Kind.NEXT_BATCH, Kind.PAUSE)
RECORD = "record_param_comms"


@dataclass(frozen=True)
class Seen:
    """An op, the half of a pair that it shows itself, the device, the rank's group and partner."""

    op: Op
    role: Role
    gpu: Gpu | None
    group: Group | None
    ends: Ends | None

    @property
    def label(self) -> Label:
        """The op's label."""
        return self.op.label

    @property
    def in_graph(self) -> bool:
        """Whether a CUDA graph launches it: then no operator, call or range is its own."""
        label = self.op.label
        return self.gpu is not None and label.runtime is None and label.kernel is not None

    @property
    def collective(self) -> Collective | None:
        """What a communication op moves, as far as c10d was there to write it down."""
        return None if self.in_graph else self.op.label.collective

    @property
    def lane(self) -> Lane:
        """The host thread that does it."""
        return lanes.thread(self.op.thread, self.gpu is not None)

    @property
    def runtime(self) -> str | None:
        """The main runtime call; a label's default name says nothing of ops that launch nothing."""
        name = self.label.runtime
        if self.gpu is None or name is None:
            return None
        if name == "cudaLaunchKernel" and self.op.kind not in (Kind.KERNEL, *COMMUNICATION):
            return calls.DEFAULT.get(self.op.kind)
        return name

    @property
    def works_on_device(self) -> bool:
        """Whether the device does something for it."""
        kinds = (Kind.KERNEL, *COMMUNICATION)
        return self.gpu is not None and self.label.kernel is not None and self.op.kind in kinds

    @property
    def begins_q16(self) -> int:
        """Share of the host's time before the first operator."""
        return ENGINE_Q16 if self.op.thread == Thread.AUTOGRAD else PYTHON_Q16

    @property
    def entered_q16(self) -> int:
        """Share of the host's time by which all operators have begun; collectives need the rest."""
        if self.op.kind in WAITING:
            return ONE * 5 // 8
        return (self.begins_q16 + ONE) // 2 if self.op.kind in COMMUNICATION else ONE

    def place_q16(self, place: int, count: int) -> int:
        """Return the share of the host's time before the `place`-th of `count` calls' room."""
        begins = self.entered_q16 if self.collective is not None else self.begins_q16
        return begins + place * (ONE - begins) // (count + 1)

    def operators(self) -> list[Placed]:
        """Operators with the points of their ends."""
        names = list(self.label.cpu_ops)
        if self.gpu is not None and self.collective is not None and RECORD not in names:
            names.append(RECORD)
        return placed(names, self.begins_q16, self.entered_q16)

    def range_name(self) -> str:
        """Name of the range around a communication op."""
        assert self.collective is not None
        return range_name(self.collective, "nccl" if self.gpu else "gloo", self.ends)
