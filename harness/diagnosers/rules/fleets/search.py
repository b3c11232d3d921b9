"""Which segment of a fleet explains best what grew."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from harness.diagnosers.features.arrays import Floats, reduced
from harness.diagnosers.rules.fleets.jobs import Compared, Fleet, Members

CHANGES = ("driver", "nccl", "framework", "image", "storage")  # what is rolled out or replaced
CONTEXTS = ("config", "model", "gpu_model", "ranks")  # which of a change's jobs may feel it
DEVICES = ("machine", "gpu_serial")
FEWEST = 5  # jobs of a segment: a mean of fewer rests on one or two
# Between what may be called healthy (less than 1.03) and faulty (more than 1.05): docs/labels.md.
SLOWER = 1.04
# Chance that noise alone puts any of the segments forward (Bonferroni over all of them).
BY_CHANCE = 0.01
# A slow card slows its machine's jobs on several cards: the machine is to blame if its other cards
# lose at least half of what it loses. A segment is, if half of its jobs feel it so much.
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Segment:
    """Jobs that share the values of one or two columns, and those that surely do not."""

    values: tuple[tuple[str, str], ...]
    jobs: Members
    others: Members
    past: Members

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        return tuple(column for column, _ in self.values)


def segments_of(fleet: Fleet) -> tuple[Segment, ...]:
    """Every value of a column that may have changed, alone and with a context.

    A pair that leaves out no job of its change is the change alone, and no segment.
    """
    changes = [segment for column in CHANGES for segment in _alone(fleet, column)]
    devices = [segment for column in DEVICES for segment in _alone(fleet, column)]
    contexts = [segment for column in CONTEXTS for segment in _alone(fleet, column)]
    pairs = (
        Segment(a.values + b.values, a.jobs & b.jobs, ~(a.jobs & b.jobs), a.past & b.past)
        for a, b in itertools.product(changes, contexts)
        if (a.jobs & ~b.jobs).any()
    )
    enough = (s for s in (*changes, *devices, *pairs) if s.jobs.sum() >= FEWEST)
    return tuple(segment for segment in enough if segment.others.sum() >= FEWEST)


def _alone(fleet: Fleet, column: str) -> list[Segment]:
    now, past = fleet.now.names[column], fleet.past.names[column]
    found = []
    for name in sorted(set(now) - {""}):
        jobs = now == name
        others = ~jobs
        if column == "gpu_serial":  # jobs on several cards do not say on which
            others &= ~(
                fleet.now.shared & np.isin(fleet.now.names["machine"], _machine(fleet, jobs))
            )
        found.append(Segment(((column, name),), jobs, others, past == name))
    return found


def _machine(fleet: Fleet, jobs: Members) -> list[str]:
    return sorted(set(fleet.now.names["machine"][jobs]))


class Search:
    """Holds segments against the jobs outside them."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.segments = segments_of(fleet)
        self._seconds = fleet.now.numbers("seconds")
        self._expected = self._seconds / np.exp(fleet.compared("seconds").now)

    @property
    def comparable(self) -> int:
        """How many jobs can be held against jobs alike."""
        return int(np.isfinite(self._expected).sum())

    @cached_property
    def slow(self) -> list[Segment]:
        """The segments that explain best which jobs are slower, none if none is slow enough."""
        slow = [s for s in self.segments if self.slowdown(s) > SLOWER]
        return self._likeliest("seconds", self._greater("seconds", slow))

    def best(self, name: str, columns: Sequence[tuple[str, ...]], sign: float) -> list[Segment]:
        """Segments of some columns that explain best in which jobs a value grew, all of them.

        Half of a segment's jobs must have grown: else it holds others that did.
        """
        owned = [segment for segment in self.segments if segment.columns in columns]
        values = self.fleet.compared(name).now
        grown = [s for s in self._greater(name, owned, sign) if _typical(sign * values, s)]
        slow = [s for s in grown if self.slowdown(s) > SLOWER]
        return self._likeliest(name, slow)

    def slowdown(self, segment: Segment) -> float:
        """Seconds a step over what jobs alike took, inside over outside; each job counts once."""
        return self._longer(segment.jobs) / self._longer(segment.others)

    def change(self, values: Floats, segment: Segment) -> float:
        """Mean inside less mean outside; NaN if either is unknown."""
        return _mean(values[segment.jobs]) - _mean(values[segment.others])

    def _longer(self, jobs: Members) -> float:
        jobs = jobs & np.isfinite(self._expected)
        return float(self._seconds[jobs].sum() / self._expected[jobs].sum()) if jobs.any() else 1.0

    def _greater(self, name: str, segments: Sequence[Segment], sign: float = 1.0) -> list[Segment]:
        """Those in which a value is greater than chance among all segments would make it."""
        compared = self.fleet.compared(name)
        bound = -NormalDist().inv_cdf(BY_CHANCE / max(len(self.segments), 1))
        found = [s for s in segments if sign * self._surprise(compared, s) > bound]
        return [s for s in found if s.columns != ("machine",) or self._by_itself(compared.now, s)]

    def _likeliest(self, name: str, segments: list[Segment]) -> list[Segment]:
        """The likeliest and those that the likelihood does not tell from it, likeliest first.

        It does not where the ratio is less than the number of segments: one of so many reaches
        that by luck. What only narrows one of them is left out.
        """
        values = self.fleet.compared(name).now
        gains = {segment: _gain(values, segment.jobs) for segment in segments}
        least = max(gains.values(), default=0.0) - math.log(max(len(self.segments), 1))
        close = sorted((s for s in segments if gains[s] >= least), key=lambda s: -gains[s])
        plain = {segment.values for segment in close}
        return [s for s in close if len(s.values) == 1 or s.values[:1] not in plain]

    def _surprise(self, compared: Compared, segment: Segment) -> float:
        """Difference between inside and outside, in standard errors that hold if there is none.

        What the segment differed by in the reference is no change and is taken away. The noise is
        that of jobs outside; what is unknown of a unit is shared by all its jobs.
        """
        known = np.isfinite(compared.now)
        inside, outside = segment.jobs & known, segment.others & known
        if min(inside.sum(), outside.sum()) < FEWEST:
            return 0.0
        difference = compared.now[inside].mean() - compared.now[outside].mean()
        if segment.past.sum() >= FEWEST:
            past = compared.past
            difference -= np.nan_to_num(_mean(past[segment.past]) - _mean(past[~segment.past]))
        noise = compared.now[outside].var() * (1 / inside.sum() + 1 / outside.sum())
        jobs = np.bincount(self.fleet.units[inside], minlength=len(compared.doubt)) / inside.sum()
        return float(difference / math.sqrt(max(noise + float(jobs**2 @ compared.doubt), 1e-18)))

    def _by_itself(self, values: Floats, machine: Segment) -> bool:
        """Whether a machine differs by itself, and not only by the one card that differs most."""
        serials = self.fleet.now.names["gpu_serial"]
        alone = machine.jobs & ~self.fleet.now.shared & np.isfinite(values)
        whole = self.change(values, machine)
        outside, names = _mean(values[machine.others]), sorted(set(serials[alone]))
        if len(names) < 2:
            return True
        off = [abs(_mean(values[alone & (serials == name)]) - outside) for name in names]
        rest = alone & (serials != names[int(np.argmax(off))])
        return bool((_mean(values[rest]) - outside) / whole > HALF)


def _typical(values: Floats, segment: Segment) -> bool:
    """Whether half of the segment's jobs differ by half of what their mean differs by."""
    known = np.isfinite(values)
    inside, outside = values[segment.jobs & known], values[segment.others & known]
    if not len(inside) or not len(outside):
        return False
    between = float(np.median(inside)) - float(np.median(outside))
    return between > HALF * float(inside.mean() - outside.mean())


def _gain(values: Floats, jobs: Members) -> float:
    """Log likelihood that a mean of its own for a segment adds, of normal noise of unknown size."""
    known = np.isfinite(values)
    values, jobs = values[known], jobs[known]
    before = float(np.sum((values - values.mean()) ** 2))
    after = sum(float(np.sum((p - p.mean()) ** 2)) for p in (values[jobs], values[~jobs]))
    return 0.5 * len(values) * math.log(before / max(after, 1e-12 * before)) if before else 0.0


def _mean(values: Floats) -> float:
    return reduced(values, np.mean)
