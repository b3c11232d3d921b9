"""What a step should take, as far as a program tells before it has run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.program import Ints, Kind, Op, Program, Stream

QUANTUM_NS = 4_000_000  # an INLINE op may lose its core once in each


@dataclass(frozen=True)
class Expected:
    """Sums over a step at nominal speed; arrays of int64, (ranks,).

    Attributes:
        host_ns: Time of host threads.
        compute_ns, memory_ns: COMPUTE stream's time that arithmetic, and memory, are busy.
        device_ns: Time of the COMPUTE stream's kernels.
        chances: How often a rank may lose its core.
    """

    host_ns: Ints
    compute_ns: Ints
    memory_ns: Ints
    device_ns: Ints
    chances: Ints

    @property
    def step_ns(self) -> int:
        """The longer of host and device, on the rank that has most of it."""
        return int(max(np.maximum(self.host_ns, self.device_ns).max(initial=1), 1))

    @property
    def chance_ns(self) -> Ints:
        """Host time for each chance to lose the core, (ranks,)."""
        return np.maximum(self.host_ns // np.maximum(self.chances, 1), 1)


def expect(program: Program) -> Expected:
    """Add a program's ops up."""
    sums: dict[tuple[int, ...] | None, list[int]] = {}
    for op in program.ops:
        own = sums.setdefault(op.ranks, [0] * 5)
        for place, amount in enumerate(_amounts(op)):
            own[place] += amount
    found = np.zeros((5, program.ranks), np.int64)
    for ranks, amounts in sums.items():
        found[:, slice(None) if ranks is None else list(ranks)] += np.array(amounts)[:, None]
    return Expected(*found)


def _amounts(op: Op) -> tuple[int, int, int, int, int]:
    """What an op adds to the fields of `Expected`."""
    host_ns, chances = op.host_ns + op.launch_ns, int(op.host_ns > 0)
    work_ns = op.fixed_ns + max(op.compute_ns, op.memory_ns)
    if op.kind == Kind.INLINE:
        return host_ns + work_ns, 0, 0, 0, chances + max(work_ns // QUANTUM_NS, 1)
    if op.kind == Kind.KERNEL and op.stream == Stream.COMPUTE:
        return host_ns, op.compute_ns, op.memory_ns, work_ns, chances
    return host_ns, 0, 0, 0, chances
