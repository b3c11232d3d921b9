"""When the agents of hosts take their samples, and what counters show then.

An agent on every host reads everything at an interval. It is a little late each time, sometimes
much, and now and then it misses a sample. How often it reads depends on the job's length and size
and never on how the job fares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.job import Job
from injectors.sim.noise import Ints

LONG_STEPS = 500  # a job of so many steps is watched as a long run
MANY_RANKS = 64
MS = 10**6
LATE_Q16, MISSED_Q16 = 1311, 655  # 2 % and 1 % of the samples
FRACTION_BITS = 20  # of a step's length, in interpolating counters

Flags = NDArray[np.bool_]


def interval_ns(job: Job) -> int:
    """Return how often the agents read: 100 or 200 ms, in long runs 1 s."""
    if job.steps >= LONG_STEPS:
        return 1000 * MS
    return 200 * MS if job.places.ranks > MANY_RANKS else 100 * MS


@dataclass(frozen=True)
class Samples:
    """Sample times of every host.

    Attributes:
        true_ns: (hosts, samples), when each was taken; increasing.
        taken: (hosts, samples), False where the agent missed it.
        clock_ns: (hosts, samples), what the host's clock showed.
    """

    true_ns: Ints
    taken: Flags
    clock_ns: Ints

    def before(self) -> Ints:
        """Return for each sample the index of the last one taken before it, -1 for none."""
        numbers = np.where(self.taken, np.arange(self.taken.shape[1]), -1)
        last = np.maximum.accumulate(numbers, axis=1)
        return np.concatenate([np.full((len(last), 1), -1, np.int64), last[:, :-1]], axis=1)

    def every(self, number: int) -> Samples:
        """Return every so many of the samples."""
        kept = slice(None, None, number)
        return Samples(self.true_ns[:, kept], self.taken[:, kept], self.clock_ns[:, kept])


def samples(job: Job, clocks: Clocks, end_ns: int) -> Samples:
    """Draw the sample times up to `end_ns`."""
    every = interval_ns(job)
    hosts = np.arange(job.places.hosts)[:, None]
    numbers = np.arange(max(end_ns // every + 1, 2))[None, :]
    of = noise.keys(job.seed, "sample", hosts, numbers)
    phase = noise.scale_q16(noise.uniform_q16(noise.keys(job.seed, "agent", hosts)), every // 4)
    late = noise.exponential_q16(of, every // 100)
    much = noise.uniform_q16(noise.extend(of, "late")) < LATE_Q16
    further = noise.scale_q16(noise.uniform_q16(noise.extend(of, "how late")), every // 2)
    true = numbers * every + phase + np.minimum(late + much * further, every * 7 // 10)
    taken = noise.uniform_q16(noise.extend(of, "missed")) >= MISSED_Q16
    return Samples(true, taken & (true <= end_ns), clocks.of_hosts(true, hosts))


def place(ends_ns: Ints, times_ns: Ints) -> tuple[Ints, Ints]:
    """Find where times lie among steps.

    Args:
        ends_ns: (steps, ranks), when each step ended; the first began at 0.
        times_ns: (ranks, n).

    Returns:
        The step of each time (the last one for what lies behind it) and the part of the step
        that is over by then, of 2**FRACTION_BITS; both of shape (ranks, n).
    """
    last = len(ends_ns) - 1
    step = np.stack(
        [
            np.searchsorted(ends, times, side="right")
            for ends, times in zip(ends_ns.T, times_ns, strict=True)
        ]
    ).astype(np.int64)
    step = np.minimum(step, last)
    begins = np.concatenate([np.zeros((1, ends_ns.shape[1]), np.int64), ends_ns[:-1]])
    rank = np.arange(ends_ns.shape[1])[:, None]
    begin, end = begins[step, rank], ends_ns[step, rank]
    part = ((times_ns - begin) << FRACTION_BITS) // np.maximum(end - begin, 1)
    return step, np.clip(part, 0, 1 << FRACTION_BITS)


@dataclass(frozen=True)
class Reader:
    """Reads counters that grow evenly within each step, at given times.

    Attributes:
        step, part: (ranks, n), see `place`.
    """

    step: Ints
    part: Ints

    def read(self, grown: Ints) -> Ints:
        """Return counters at the times, (ranks, n), from their growth a step, (steps, ranks)."""
        rank = np.arange(self.step.shape[0])[:, None]
        before = np.cumsum(grown, axis=0) - grown
        now = grown[self.step, rank]
        # In two parts, lest the product of a large growth and the fraction overflow.
        whole, rest = now >> FRACTION_BITS, now & ((1 << FRACTION_BITS) - 1)
        within = whole * self.part + (rest * self.part >> FRACTION_BITS)
        return np.asarray(before[self.step, rank] + within)

    def level(self, levels: Ints) -> Ints:
        """Return at the times, (ranks, n), what holds throughout each step, (steps, ranks)."""
        return np.asarray(levels[self.step, np.arange(self.step.shape[0])[:, None]])


def reader(ends_ns: Ints, times_ns: Ints) -> Reader:
    """Return a reader of counters at `times_ns`, (ranks, n); see `place`."""
    return Reader(*place(ends_ns, times_ns))


def growth(counters: Ints, before: Ints) -> Ints:
    """Return how much counters (rows, n) grew since the samples `before`; 0 where there is none."""
    last = np.take_along_axis(counters, np.maximum(before, 0), axis=1)
    return np.where(before < 0, 0, counters - last)
