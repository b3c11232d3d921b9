"""One GPU with a lower power limit than its peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from injectors.faults.simulated import AMONG_PEERS, OneGpuFault
from injectors.sim.names import TRANSFORMERS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class PowerCap(OneGpuFault):
    """One GPU with a lower power limit than its peers.

    Mechanism: the board or its controller enforces the limit by lowering the clock.
    Source: dell-idrac issue 3, one of four V100 at 150 W.
    """

    cause: ClassVar[str] = "power_cap"
    simulated: ClassVar[tuple[str, ...] | None] = (*TRANSFORMERS, "vision", "diffusion")
    rank: NonNegativeInt = 0
    limit_w: PositiveInt

    def perturb(self, job: Job) -> None:
        """Lower the rank's limit."""
        job.gpus.power_limit_w[self.rank] = self.limit_w

    def audit_witness(self) -> tuple[str, str]:
        """Its peers may draw more."""
        return (
            f"""
            SELECT count(*) > 0 FROM {AMONG_PEERS}
            WHERE power_limit < 0.97 * others_limit AND capped > 0.5
              AND clock < 0.985 * others_clock
            """,
            "one device has a lower power limit than its peers, says that it holds its clock down,"
            " and its clock is lower than theirs",
        )
