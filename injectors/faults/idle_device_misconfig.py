"""A rank that was given another rank's GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt

from cases.schema import Locus, Topology
from injectors.faults.simulated import AMONG_PEERS, SimulatedFault
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class IdleDeviceMisconfig(SimulatedFault):
    """A rank that was given another rank's GPU.

    Mechanism: CUDA_VISIBLE_DEVICES or the local rank is wrong, so two processes share one device
    and another device idles.
    Source: Microsoft study (ICSE 2024), idle devices.
    """

    cause: ClassVar[str] = "idle_device_misconfig"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    rank: NonNegativeInt = 1
    onto: NonNegativeInt = 0

    def perturb(self, job: Job) -> None:
        """Give the rank the other one's GPU."""
        job.gpus.device_of[self.rank] = self.onto

    def locus(self, topology: Topology) -> Locus:
        """The GPU that idles."""
        gpu = topology.ranks[self.rank].gpu
        assert gpu is not None
        return Locus(scope="gpu", gpus=(gpu,))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All ranks but the two that share a device wait for these."""
        sharing = (self.rank, self.onto)
        return tuple(p.rank for p in topology.ranks if p.rank not in sharing)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """Both ranks must be on one host, and be two."""
        places = scenario.places
        if max(self.rank, self.onto) >= places.ranks or self.rank == self.onto:
            return f"rank and onto must be two ranks below {places.ranks}"
        if places.host(self.rank) != places.host(self.onto):
            return "rank and onto must be on one host"
        return None

    def audit_witness(self) -> tuple[str, str]:
        """A device that nobody uses needs no comparison."""
        return (
            f"SELECT min(users) = 0 AND max(users) > 1 FROM {AMONG_PEERS}",
            "no process uses one of the devices and more than one uses another",
        )
