"""RoCE over a fabric without flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cases.schema import Topology
from injectors.faults.simulated import SimulatedFault
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class RoceFlowControlLoss(SimulatedFault):
    """RoCE over a fabric without flow control.

    Mechanism: without priority flow control bursts overflow switch buffers, and lost packets make
    whole windows go again, so that bandwidth collapses.
    Source: nccl issues 378 and 306.
    """

    cause: ClassVar[str] = "roce_flow_control_loss"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2
    least_hosts: ClassVar[int] = 2
    bandwidth_left: float = Field(gt=0, lt=1)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """InfiniBand has flow control of its own."""
        roce = scenario.build_workload().model_dump().get("transport") == "roce"
        return None if roce else "needs transport roce"

    def perturb(self, job: Job) -> None:
        """Let bandwidth between hosts collapse."""
        job.network.pause_storm_q16 = round(self.bandwidth_left * ONE)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank waits for its collectives."""
        return tuple(place.rank for place in topology.ranks)
