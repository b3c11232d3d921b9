"""What a step should take, as far as a program tells before it has run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.program import Ints, Kind, Program, Stream

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
    found = Expected(*(np.zeros(program.ranks, np.int64) for _ in range(5)))
    for op in program.ops:
        ranks = slice(None) if op.ranks is None else list(op.ranks)
        found.host_ns[ranks] += op.host_ns + op.launch_ns
        found.chances[ranks] += op.host_ns > 0
        work_ns = op.fixed_ns + max(op.compute_ns, op.memory_ns)
        if op.kind == Kind.INLINE:
            found.host_ns[ranks] += work_ns
            found.chances[ranks] += max(work_ns // QUANTUM_NS, 1)
        elif op.kind == Kind.KERNEL and op.stream == Stream.COMPUTE:
            found.device_ns[ranks] += work_ns
            found.compute_ns[ranks] += op.compute_ns
            found.memory_ns[ranks] += op.memory_ns
    return found
