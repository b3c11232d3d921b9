"""What faults that save too much have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PositiveFloat, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, others, rank_or_job, uneven

if TYPE_CHECKING:
    from injectors.scenario import Scenario


class Saving(Fault):
    """Rank 0 saves the model and `megabytes` of further state every `every` steps."""

    every: PositiveInt
    megabytes: PositiveFloat

    def misfit(self, scenario: Scenario) -> str | None:
        """Trials must be whole periods."""
        return uneven(scenario, self.every)

    def locus(self, topology: Topology) -> Locus:
        """The rank that saves, or the whole job where there is no other."""
        return rank_or_job(topology, 0)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one that saves."""
        return others(topology, 0)
