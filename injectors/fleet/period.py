"""A period with what its jobs take when nothing is wrong, by which their owners go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from injectors.fleet.fleet import Fleet, Texts
from injectors.fleet.settings import FleetGroup
from injectors.fleet.steps import Steps, run
from injectors.fleet.traffic import Traffic
from injectors.fleet.world import World
from injectors.sim.noise import Ints


@dataclass(frozen=True)
class Period:
    """One period of a fleet."""

    world: World

    @cached_property
    def healthy(self) -> Steps:
        """Steps without any fault."""
        return run(self.world)

    @cached_property
    def kinds(self) -> Texts:
        """Name of each job's kind; jobs of a kind honestly take equally long steps."""
        return self._kinds(self.world.jobs.long)

    @cached_property
    def usual_ns(self) -> dict[str, int]:
        """Whole mean of the healthy steps of each kind."""
        sums: dict[str, tuple[int, int]] = {}
        for name, step in zip(self.kinds, self.healthy.step_ns.tolist(), strict=True):
            total, count = sums.get(name, (0, 0))
            sums[name] = total + step, count + 1
        return {name: total // count for name, (total, count) in sums.items()}

    @cached_property
    def expected_ns(self) -> Ints:
        """Step that each job's owner expects: what jobs alike take.

        Where owners are blind to the inputs' size they expect what short ones take.
        """
        long = self.world.jobs.long
        asked = self._kinds(np.zeros_like(long)) if self.world.traffic.blind else self.kinds
        own = self.healthy.step_ns.tolist()
        found = [self.usual_ns.get(kind, step) for kind, step in zip(asked, own, strict=True)]
        return np.array(found, dtype=np.int64)

    def ratio_to(self, before: Period, step_ns: Ints) -> float:
        """Mean of this period's steps over what jobs alike took before; kinds of both only."""
        own = zip(self.kinds, step_ns.tolist(), strict=True)
        pairs = [(int(step), before.usual_ns.get(kind, 0)) for kind, step in own]
        known = [(step, usual) for step, usual in pairs if usual]
        return sum(step for step, _ in known) / sum(usual for _, usual in known)

    def _kinds(self, long: Iterable[int]) -> Texts:
        columns = self.world.columns
        parts = (columns[c] for c in ("model", "config", "gpu_model", "ranks"))
        rows = zip(*parts, long, strict=True)
        return np.array(["/".join(map(str, row)) for row in rows], dtype=object)


@dataclass(frozen=True)
class Periods:
    """The periods of one group, each simulated once however many arms share it.

    Attributes:
        group: The group's settings.
        key: The group's key.
    """

    group: FleetGroup
    key: int
    _known: dict[tuple[Traffic, bool, bool], Period] = field(default_factory=dict)

    def get(self, traffic: Traffic, later: bool, scattered: bool = False) -> Period:
        """Return a period of the group's fleet."""
        asked = traffic, later, scattered
        if asked not in self._known:
            fleet = Fleet(self.group, self.key, scattered)
            self._known[asked] = Period(World(fleet, traffic, later))
        return self._known[asked]
