"""Faults that no injector makes on a real machine: only the simulator knows them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from cases.errors import ScenarioError
from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others


class SimulatedFault(Fault):
    """A fault with `perturb` alone."""

    needs: ClassVar[tuple[str, ...]] = ("simulator",)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Refuse.

        Raises:
            ScenarioError: always.
        """
        raise ScenarioError("can only be simulated (--backend sim)", where=self.cause)


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
