"""What several tables are made of, worked out once for a run."""

from __future__ import annotations

from dataclasses import dataclass

from injectors.sim.clocks import Clocks, clocks
from injectors.sim.cpu_time import cpu_time
from injectors.sim.expected import expect
from injectors.sim.run import Run
from injectors.sim.tables.batches import Batches, batches
from injectors.sim.tables.cpu_use import CpuUse, cpu_use
from injectors.sim.tables.foreign import Foreign, foreign
from injectors.sim.tables.sampling import Samples, samples
from injectors.sim.tables.traffic import Traffic, traffic


@dataclass(frozen=True)
class Activity:
    """A run's clocks, samples and activity.

    Attributes:
        nominal_ns: What a step should take.
        batches: None where no loader delivers any.
    """

    clocks: Clocks
    samples: Samples
    traffic: Traffic
    cpu: CpuUse
    batches: Batches | None
    foreign: tuple[Foreign, ...]
    nominal_ns: int


def activity(run: Run) -> Activity:
    """Work out what a run's tables have in common."""
    expected = expect(run.program)
    cpu = cpu_time(run.job, expected)
    moved, own = traffic(run), clocks(run.job)
    return Activity(
        clocks=own,
        samples=samples(run.job, own, int(run.marks["end"].max())),
        traffic=moved,
        cpu=cpu_use(run, cpu, moved),
        batches=batches(run, cpu) if run.program.batches else None,
        foreign=tuple(foreign(run.job)),
        nominal_ns=expected.step_ns,
    )
