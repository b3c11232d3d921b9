"""How long each job's steps take, part by part, under a set of edited parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from injectors.fleet import devices, transfers
from injectors.fleet.clocks import Clocks
from injectors.fleet.conditions import Conditions
from injectors.fleet.parameters import Edit
from injectors.fleet.world import World
from injectors.sim.noise import Ints

OVERHEAD_NS, OVERHEAD_JITTER_NS = 1_500_000, 300_000
JITTER_PERCENT = 1  # of what a batch takes to load


@dataclass(frozen=True)
class Steps:
    """What a job would report of its steps; arrays with one entry a job, times in ns.

    `clocks` are of the rank whose GPU computes longest, `pcie_width` is the least of all ranks.
    """

    compute_ns: Ints
    communication_ns: Ints
    copy_ns: Ints
    data_wait_ns: Ints
    overhead_ns: Ints
    tensor_ns: Ints
    read_ns: Ints
    decode_ns: Ints
    recompiles: Ints
    clocks: Clocks
    limit_w: Ints
    pcie_width: Ints
    received_bytes: Ints
    memory_used_bytes: Ints

    @property
    def step_ns(self) -> Ints:
        """The whole step."""
        parts = self.compute_ns + self.communication_ns + self.copy_ns + self.data_wait_ns
        return parts + self.overhead_ns


def run(world: World, edits: Sequence[Edit] = ()) -> Steps:
    """Time the steps of every job of a period; a synchronous job goes with its slowest rank."""
    on = Conditions(world, edits)
    clocks, limit_w = devices.clocks(on)
    compute = devices.compute_ns(on, clocks.clock_q16)
    slowest = on.slowest(compute)
    width = transfers.widths(on)
    copied_bytes, copy = transfers.copies(on, width)
    sent_bytes, communication = transfers.communication(on, width)
    read, decode = transfers.loading(on)
    used, paged = devices.memory(on)
    supply = (read + decode) // world.of_card("workers")
    late = np.maximum(supply - (compute[slowest] + communication + copy), 0)
    return Steps(
        compute_ns=compute[slowest],
        communication_ns=communication,
        copy_ns=copy,
        data_wait_ns=late + on.jitter_ns(supply * JITTER_PERCENT // 100),
        overhead_ns=OVERHEAD_NS + on.jitter_ns(np.full_like(copy, OVERHEAD_JITTER_NS)),
        tensor_ns=devices.tensor_ns(on, clocks.clock_q16[slowest]),
        read_ns=read,
        decode_ns=decode,
        recompiles=devices.recompiles(on),
        clocks=Clocks(*(values[slowest] for values in vars(clocks).values())),
        limit_w=limit_w[slowest],
        pcie_width=width,
        received_bytes=copied_bytes + sent_bytes + paged[slowest],
        memory_used_bytes=used[slowest],
    )
