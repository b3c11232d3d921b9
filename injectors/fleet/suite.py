"""The suite of fleet cases: its groups, and how each is made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cases.digest import document_digest
from injectors.fleet.arms import Trial
from injectors.fleet.making import VERSION, Making
from injectors.fleet.period import Periods
from injectors.fleet.settings import FleetGroup, read_matrix
from injectors.sim import noise
from injectors.sim.made import MadeCase, MadeGroup


@dataclass(frozen=True)
class Group:
    """One group on its way to cases; it can be sent to another process and made there.

    Attributes:
        settings: The fleet, its jobs, and the arms.
        private_seed: Mixed into every seed and id of a suite that nobody has seen.
    """

    settings: FleetGroup
    private_seed: int | None = None

    @property
    def name(self) -> str:
        """The group's name in labels; of a private suite it differs from the public one's."""
        if self.private_seed is None:
            return self.settings.name
        return f"{self.settings.name}-{self.key % 2**24:06x}"

    @cached_property
    def digest(self) -> str:
        """By which a finished group is recognised: its settings, their version and its key."""
        settings = document_digest(self.settings.model_dump(mode="json"))
        return f"{self.key:016x}-{settings}"

    @cached_property
    def key(self) -> int:
        """The key from which all that is random about the group follows."""
        private = "" if self.private_seed is None else str(self.private_seed)
        return noise.key(VERSION, "fleet", self.settings.name, private)

    def make(self) -> MadeGroup:
        """Simulate every arm and keep the cases whose labels hold; the twin comes first."""
        made: list[MadeCase] = []
        refused: dict[str, str] = {}
        periods = Periods(self.settings, self.key)
        for number, arm in enumerate(self.settings.arms):
            making = Making(Trial(periods, arm), self.name, self.private_seed)
            found = making.make(made[0].info.id if made else None)
            if not isinstance(found, str):
                made.append(found)
                continue
            refused[f"{self.name}/{arm.name}"] = found
            if not number:
                break
        return MadeGroup(self.name, tuple(made), refused)


def groups(private_seed: int | None = None) -> list[Group]:
    """Return the groups of the public suite, or of one whose seed nobody has seen."""
    return [Group(settings, private_seed) for settings in read_matrix()]


def make(group: Group) -> MadeGroup:
    """Make the cases of one group."""
    return group.make()
