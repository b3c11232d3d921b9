"""Faults that no injector makes on a real machine: only the simulator knows them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from cases.errors import ScenarioError
from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others

# A rank's device under load beside the median of all; for audits, which have no reference run.
AMONG_PEERS = """
    (SELECT *, median(clock) OVER () AS others_clock, median(power_limit) OVER () AS others_limit
     FROM (SELECT rank, avg(sm_clock_mhz) AS clock, max(power_limit_w) AS power_limit,
                  avg(temperature_c) AS temperature, median(processes) AS users,
                  avg(CAST(event_reasons & 96 > 0 AS INT)) AS hot,
                  avg(CAST(event_reasons & 4 > 0 AS INT)) AS capped
           FROM gpu GROUP BY rank))
"""


class SimulatedFault(Fault):
    """A fault with `perturb` alone."""

    needs: ClassVar[tuple[str, ...]] = ("simulator",)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Refuse.

        Raises:
            ScenarioError: always.
        """
        raise ScenarioError("can only be simulated (--backend sim)", where=self.cause)

    def witness(self) -> tuple[str, str]:
        """The witness of simulated cases: there are no others."""
        from injectors.sim.witnesses import WITNESSES

        return WITNESSES[self.cause]


class OneGpuFault(SimulatedFault):
    """A fault of one rank's GPU, for which all other ranks wait."""

    rank: int = 0

    def locus(self, topology: Topology) -> Locus:
        """The rank's GPU."""
        gpu = topology.ranks[self.rank].gpu
        assert gpu is not None
        return Locus(scope="gpu", gpus=(gpu,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for it."""
        return others(topology, self.rank)
