"""Machines, their GPUs and the versions that they get, drawn from a group's key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from injectors.fleet.catalogue import CARDS, VERSIONS, Card
from injectors.fleet.settings import FleetGroup, VersionColumn
from injectors.sim import noise
from injectors.sim.noise import Ints

Texts = NDArray[np.object_]
DAY_NS = 86_400 * 10**9
HOUR_NS = 3_600 * 10**9
# Deviation of the power that a chip needs: clocks go with its root, so a spread of 2.8 %, which
# makes 8 % between the best and the worst of 8 (mean of arXiv 2208.11035v3; at most 22 % there).
SILICON_Q16 = 3670
SCATTER_Q16 = 7864  # a machine's own share where machines scatter: 6 % in clock
REPLACED = 3  # GPUs that were exchanged between the two periods
FIRST_ROLLOUT_DAY, ROLLOUT_DAYS = 1, 6
NEVER_PERCENT = 15  # machines that keep their driver


@dataclass(frozen=True)
class Fleet:
    """The machines of a group.

    Arrays over GPUs have machines * gpus_per_machine entries, machine by machine.

    Attributes:
        group: The group's settings.
        key: The group's key.
        scattered: Whether machines differ as widely as documented, in both periods.
    """

    group: FleetGroup
    key: int
    scattered: bool = False

    @cached_property
    def versions(self) -> dict[VersionColumn, tuple[str, str, str]]:
        """Two versions that both periods have, then the one that only the later one has."""
        found: dict[VersionColumn, tuple[str, str, str]] = {}
        for column in ("driver", "nccl", "framework", "image", "storage"):
            pool = VERSIONS[column]
            order = noise.permutation(noise.key(self.key, "versions", column), len(pool))
            found[column] = (pool[order[0]], pool[order[1]], pool[order[2]])
        return found

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """Names of the machines."""
        first = noise.key(self.key, "machines") % 800
        return tuple(f"node{first + number:03d}" for number in range(self.group.machines))

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """The card of each machine; every model of the group is there."""
        order = noise.permutation(noise.key(self.key, "cards"), self.group.machines)
        models = self.group.cards
        return tuple(CARDS[models[int(place) % len(models)]] for place in order)

    @cached_property
    def gpu_machine(self) -> Ints:
        """Number of the machine of each GPU."""
        return np.repeat(np.arange(self.group.machines), self.group.gpus_per_machine)

    @cached_property
    def replaced(self) -> Ints:
        """GPUs that were exchanged before the later period."""
        order = noise.permutation(noise.key(self.key, "replaced"), len(self.gpu_machine))
        return np.sort(order[:REPLACED])

    def serials(self, later: bool) -> Texts:
        """Serial number of each GPU in one of the periods."""
        fresh = np.isin(np.arange(len(self.gpu_machine)), self.replaced) & later
        drawn = noise.keys(self.key, "serial", np.arange(len(fresh)), fresh.astype(np.int64))
        return np.array([f"165{int(k) % 10**10:010d}" for k in drawn], dtype=object)

    def silicon_q16(self, later: bool) -> Ints:
        """Power that each GPU needs at a clock, over that of the average one."""
        fresh = np.isin(np.arange(len(self.gpu_machine)), self.replaced) & later
        own = noise.keys(self.key, "silicon", np.arange(len(fresh)), fresh.astype(np.int64))
        result = noise.factor_q16(own, SILICON_Q16)
        if self.scattered:
            shared = noise.factor_q16(
                noise.keys(self.key, "scatter", self.gpu_machine), SCATTER_Q16
            )
            result = noise.scale_q16(result, shared)
        return result

    def drivers(self, machine: Ints, start_ns: Ints, later: bool) -> Texts:
        """Driver that each job finds on its machine when it starts."""
        numbers = np.arange(self.group.machines)
        old = np.array(self.versions["driver"], dtype=object)[
            noise.below(noise.keys(self.key, "old driver", numbers), 2)
        ]
        if not later:
            return old[machine]
        return np.where(
            start_ns >= self.upgrade_ns[machine], self.versions["driver"][2], old[machine]
        )

    @cached_property
    def upgrade_ns(self) -> Ints:
        """When each machine gets the new driver, in ns since the later period's start."""
        order = noise.permutation(noise.key(self.key, "rollout"), self.group.machines)
        days = FIRST_ROLLOUT_DAY * DAY_NS + order * (ROLLOUT_DAYS * DAY_NS // len(order))
        kept = order * 100 >= len(order) * (100 - NEVER_PERCENT)
        return np.where(kept, self.group.days * DAY_NS, days)
