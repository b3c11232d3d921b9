"""What every simulated workload offers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from cases.errors import ScenarioError
from injectors.sim.job import Job, Places
from injectors.sim.machine import Machine
from injectors.sim.program import Program
from injectors.workloads.base import Context, Workload
from injectors.workloads.base import Program as TorchProgram


class SimulatedWorkload(Workload):
    """A workload that exists only in the simulator; `transport` is what joins its hosts."""

    transport: Literal["ib", "roce", "socket"] = "ib"

    def build(self, context: Context) -> TorchProgram:
        """Refuse: there is nothing to run.

        Raises:
            ScenarioError: always.
        """
        raise ScenarioError("exists only in the simulator (--backend sim)", where=self.title)

    @abstractmethod
    def places(self, ranks: int, machine: Machine) -> Places:
        """Split the job over `ranks`; raises ValueError with what must hold of their number."""

    @abstractmethod
    def set_up(self, job: Job) -> None:
        """Fill in what is ordinary for this workload (loader, checkpoint, serving)."""

    @abstractmethod
    def compile(self, job: Job) -> Program:
        """Write the job's step as an op program."""
