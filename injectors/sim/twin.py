"""What a simulated job was told that could run for real as well: its settings and knobs.

Such a job is the twin of one that the recorder runs on CPU cores. Faults act on it by the same
`inject` as on the real one, on a run that notes what was asked for (see
injectors.sim.workloads.cpu.injected) instead of doing it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from injectors.recorder.knobs import DEFAULTS

ONE = 65536


@dataclass(frozen=True)
class Speeds:
    """How fast the machine is for this job, as one healthy recording tells.

    The defaults are what fits most healthy recordings of the suite recorded_cpu to about 10 %.

    Attributes:
        flops_per_s: Of one core in large products of float32.
        pointwise_q16: Time of element-wise work over its nominal one (see cpu.operators).
        op_ns: Python and dispatch time of an operator.
        memory_bytes_per_s: Of arrays beyond the caches.
        collective_ns: Of one round of a ring, whatever the bytes.
        collective_bytes_per_s: Of the bytes, over an interface that is not limited.
        read_ns, decode_ns: Of one batch in a loader worker: storage, CPU time.
        unpack_ns: Of taking a batch that is ready.
    """

    flops_per_s: int = 110 * 10**9
    pointwise_q16: int = ONE
    op_ns: int = 16_000
    memory_bytes_per_s: int = 35 * 10**9
    collective_ns: int = 870_000
    collective_bytes_per_s: int = 600 * 10**6
    read_ns: int = 300_000
    decode_ns: int = 1_700_000
    unpack_ns: int = 1_200_000


@dataclass
class Twin:
    """Attributes of the real job.

    Attributes:
        pinned: Whether rank r has core r to itself, as far as there are so many.
        cores: Cores of the job.
        hosts: Network namespaces that the ranks are spread over; 1: an interface each.
        link_bytes_per_s: What an interface carries in a healthy job; 0: what it can.
        settings: What the job was started with, see injectors.scenario.SETTINGS.
        knobs: What was turned, by name, see injectors.recorder.knobs.
        crowd_q16: Busy competitors of each core, by the share of the time that they run.
        limited: Bytes per second of the path of two interfaces, by (lower, higher) number; of one
            interface where both are the same.
        lossy_ppm: Packets lost in a million, by interface.
        flows: Foreign flows between two interfaces, by (source, target).
        speeds: Of the machine.
    """

    pinned: bool = False
    cores: int = 2
    hosts: int = 1
    link_bytes_per_s: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    knobs: dict[str, float] = field(default_factory=lambda: dict(DEFAULTS))
    crowd_q16: dict[int, int] = field(default_factory=dict)
    limited: dict[tuple[int, int], int] = field(default_factory=dict)
    lossy_ppm: dict[int, int] = field(default_factory=dict)
    flows: dict[tuple[int, int], int] = field(default_factory=dict)
    speeds: Speeds = Speeds()

    def core(self, rank: int) -> int:
        """Return the core that a pinned rank runs on."""
        return rank % self.cores

    def worker_cores(self, ranks: int) -> list[int]:
        """Return the cores that the loader's workers may use: those that no pinned rank has."""
        if (core := self.number("worker_core")) >= 0:
            return [core % self.cores]
        free = range(ranks, self.cores) if self.pinned else range(self.cores)
        return [*free] or [*range(self.cores)]

    def shared(self, ranks: int) -> bool:
        """Whether workers have no cores but those of the ranks."""
        return self.number("worker_core") < 0 and (not self.pinned or ranks >= self.cores)

    def number(self, knob: str) -> int:
        """Return a knob's value as a whole number."""
        return int(self.knobs[knob])
