"""Decoys that no injector makes on a real machine: only the simulator knows them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from cases.errors import ScenarioError
from injectors.faults.base import Decoy, Run


class SimulatedDecoy(Decoy):
    """A decoy with `perturb` alone."""

    needs: ClassVar[tuple[str, ...]] = ("simulator",)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Refuse.

        Raises:
            ScenarioError: always.
        """
        raise ScenarioError("can only be simulated (--backend sim)", where=self.name)
