"""What differs between the ranks and steps of a run: times, and where numbers begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from injectors.sim import noise
from injectors.sim.clocks import clocks
from injectors.sim.job import Job
from injectors.sim.kineto.anchors import Anchors, Timing
from injectors.sim.kineto.parts import Slot
from injectors.sim.noise import Ints
from injectors.sim.program import Program, StepTimes

# Where ids and correlations begin: after what the process did before it was profiled.
ID_FIRST, ID_BLOCK, ID_BLOCKS = 10_241, 1024, 24
CORRELATION_FIRST, CORRELATIONS = 100_000, 400_000


class Recorded(Protocol):
    """What traces are made of; `kept` holds the `sampled` ranks' times of the profiled steps."""

    @property
    def job(self) -> Job:
        """The job."""

    @property
    def program(self) -> Program:
        """Its step."""

    @property
    def sampled(self) -> tuple[int, ...]:
        """Ranks whose times were kept, in the order of the columns."""

    @property
    def kept(self) -> dict[int, StepTimes]:
        """Times by number of the step."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Some steps of one rank.

    Attributes:
        anchors: When its ops happened.
        starts: (slots,), the rank's first number of each.
        steps: (steps,), their numbers.
    """

    anchors: Anchors
    starts: Ints
    steps: Ints


class CellMaker:
    """Makes the cells of a run.

    Attributes:
        paths: (ops,), hashes of the ops' paths.
    """

    def __init__(self, run: Recorded) -> None:
        self._run = run
        self._clocks = clocks(run.job)
        self._timing = Timing(run.program.ops, run.job.seed, run.job.machine.gpu is not None)
        self.paths = self._timing.paths

    def cells(self, rank: int, steps: Sequence[int]) -> Cells:
        """Return the cells of a rank in some steps."""
        kept = {step: self._run.kept[step] for step in steps}
        column = self._run.sampled.index(rank)
        anchors = self._timing.anchors(kept, column, self._clocks, rank)
        return Cells(anchors, self._starts(rank), np.array(steps, np.int64))

    def _starts(self, rank: int) -> Ints:
        key = noise.keys(self._run.job.seed, "trace numbers", np.array([rank]))
        blocks = noise.below(noise.extend(key, "id"), ID_BLOCKS)[0]
        calls = noise.below(noise.extend(key, "calls"), CORRELATIONS)[0]
        starts = np.zeros(len(Slot), np.int64)
        starts[[Slot.ID, Slot.LINK]] = ID_FIRST + ID_BLOCK * blocks
        starts[Slot.CORRELATION] = CORRELATION_FIRST + calls
        starts[Slot.FLOW] = 1
        starts[Slot.DEVICE] = self.device(rank)
        return starts

    def device(self, rank: int) -> int:
        """Return the number of a rank's GPU on its host."""
        job = self._run.job
        return job.gpus.device_of.get(rank, rank) % job.places.per_host

    def window_ns(self, rank: int) -> tuple[int, int]:
        """Return when a rank's first profiled step began and its last ended, by its clock."""
        steps, column = sorted(self._run.kept), self._run.sampled.index(rank)
        hosts = self._run.kept[steps[0]].host[:, column]
        ends = np.array([hosts[hosts >= 0].min(), self._run.kept[steps[-1]].done[:, column].max()])
        first, last = self._clocks.of_hosts(ends, self._clocks.host[rank]).tolist()
        return first, last
