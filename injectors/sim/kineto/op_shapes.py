"""Events of ops; those of ops that look alike are made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from injectors.sim.kineto import calls
from injectors.sim.kineto.collectives import Ends, Group
from injectors.sim.kineto.device_events import device_events
from injectors.sim.kineto.host_events import host_events
from injectors.sim.kineto.seen import Role, Seen
from injectors.sim.kineto.shapes import Shape, shape_of
from injectors.sim.machine import Gpu
from injectors.sim.program import Kind, Op

REMEMBERED = 20_000  # before all are forgotten
MORE_CORRELATIONS = 8  # after the main call, at least


@dataclass(frozen=True, eq=False)
class OpShapes:
    """An op's events.

    Attributes:
        host, device: Those of the host's threads, and those that CUPTI records.
        ids: External ids it takes; `launcher` is the one of the operator that launches.
        correlations: Correlations it takes.
        lossy: Whether one of its records may get lost: a kernel's or its launch's.
    """

    host: Shape | None
    device: Shape | None
    ids: int
    launcher: int | None
    correlations: int
    lossy: bool


_made: dict[tuple[Any, ...], OpShapes] = {}


def op_shapes(
    op: Op, role: Role, gpu: Gpu | None, group: Group | None, ends: Ends | None
) -> OpShapes:
    """Return the events of an op.

    Args:
        op: The op.
        role: Its half of a pair that it shows itself, if any.
        gpu: The device; None where ranks compute on CPUs.
        group: Of a communication op, the rank's process group.
        ends: Of a SEND or RECV, who sends to whom.
    """
    label = op.label
    key = (
        op.kind, op.thread, op.stream, op.other, role, label.cpu_ops, label.kernel, label.category,
        label.runtime, label.dims, label.dtype, label.grid, label.block, label.registers,
        label.shared_bytes, label.bytes, label.collective, gpu and gpu.name, group, ends,
    )  # fmt: skip
    found = _made.get(key)
    if found is None:
        if len(_made) >= REMEMBERED:
            _made.clear()
        found = _made[key] = _new(Seen(op, role, gpu, group, ends))
    return found


def _new(seen: Seen) -> OpShapes:
    host, ids, launcher = host_events(seen)
    device = device_events(seen, ids)
    _, launch = calls.beside(seen.op.kind, seen.runtime is not None)
    return OpShapes(
        host=shape_of(host) if host else None,
        device=shape_of(device) if device else None,
        ids=ids,
        launcher=launcher,
        correlations=launch + MORE_CORRELATIONS if seen.runtime else 0,
        lossy=_lossy(seen),
    )


def _lossy(seen: Seen) -> bool:
    """A graph's launch belongs to many kernels, and a collective's kernel to many ranks."""
    plain = seen.op.kind == Kind.KERNEL and seen.works_on_device
    return plain and seen.runtime not in (None, "cudaGraphLaunch")
