"""What the parts of a step are worked out from: a period's jobs and the parameters as edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from injectors.fleet.parameters import Edit, Parameter, factor_q16
from injectors.fleet.world import World
from injectors.sim import noise
from injectors.sim.noise import Ints

# A job's computing and communicating vary together by 0.9 %, with the node that it runs on; each
# varies by little of its own, so that nothing but their lengths tells one from the other.
JOB_SIGMA_Q16, OWN_SIGMA_Q16 = 590, 130
LOADER_SIGMA_Q16, LOADER_OWN_SIGMA_Q16 = 1970, 330  # 3 % together, 0.5 % of their own


@dataclass(frozen=True)
class Conditions:
    """One period under a set of edits; a seat is one rank on its GPU, see `World.seat_job`."""

    world: World
    edits: Sequence[Edit] = ()

    def of_job(self, parameter: Parameter) -> Ints:
        """Factor on a parameter for each job, Q16."""
        return factor_q16(self.world.columns, parameter, self.edits)

    def of_seat(self, parameter: Parameter) -> Ints:
        """Factor on a parameter for each seat, Q16."""
        return factor_q16(self.world.seat_columns, parameter, self.edits)

    def key(self, name: str) -> noise.Keys:
        """A key for one kind of draw for each job."""
        return noise.extend(self.world.jobs.keys, name)

    def noise_q16(self, name: str) -> Ints:
        """Noise of one part of each job's steps."""
        own = noise.factor_q16(self.key(name), OWN_SIGMA_Q16)
        return noise.scale_q16(own, noise.factor_q16(self.key("job"), JOB_SIGMA_Q16))

    def loader_noise_q16(self, name: str) -> Ints:
        """Noise of one part of each job's loader."""
        own = noise.factor_q16(self.key(name), LOADER_OWN_SIGMA_Q16)
        return noise.scale_q16(own, noise.factor_q16(self.key("loader"), LOADER_SIGMA_Q16))

    def jitter_ns(self, mean_ns: Ints) -> Ints:
        """Waits that always happen, exponential."""
        return noise.scale_q16(mean_ns, noise.exponential_q16(self.key("jitter")))

    @cached_property
    def first_seats(self) -> Ints:
        """First seat of each job."""
        ranks = self.world.jobs.ranks
        return np.asarray(np.cumsum(ranks) - ranks)

    def slowest(self, values: Ints) -> Ints:
        """Seat with the largest value of each job, the first of equals."""
        largest = np.maximum.reduceat(values, self.first_seats)
        numbers = np.arange(len(values))
        seats = np.where(values == largest[self.world.seat_job], numbers, len(values))
        return np.asarray(np.minimum.reduceat(seats, self.first_seats))
