"""NCCL with a worse protocol or fewer channels than it would choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import PositiveInt

from injectors.faults.nccl_settings import SLOWER, NcclSettings, said
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING
from injectors.sim.releases import upgraded

if TYPE_CHECKING:
    from injectors.sim.job import Job


class NcclTuningRegression(NcclSettings):
    """Fix the protocol, the algorithm, or the number of channels.

    Mechanism: NCCL's cost model is overruled. The low-latency protocol LL halves the bandwidth
    of large messages; `channels` bounds how many thread blocks move data, which grades it.
    Versions: NCCL_PROTO and NCCL_ALGO from 2.5 (from 2.24 they may name single functions),
    NCCL_MAX_NCHANNELS from 2.5; from 2.17 NCCL_MAX_CTAS takes its place and both are read.
    Source: nccl#1316; nccl#1876. Not measured yet: it needs two GPUs.
    """

    cause: ClassVar[str] = "nccl_tuning_regression"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    protocol: Literal["LL", "LL128", "Simple"] | None = "LL"
    algorithm: Literal["Ring", "Tree"] | None = None
    channels: PositiveInt | None = None

    def variables(self) -> dict[str, str]:
        """Name what is fixed."""
        found = {
            "NCCL_PROTO": self.protocol,
            "NCCL_ALGO": self.algorithm,
            "NCCL_MAX_NCHANNELS": self.channels,
        }
        return {name: str(value) for name, value in found.items() if value is not None}

    def perturb(self, job: Job) -> None:
        """Overrule the choice of an NCCL that is newer."""
        job.versions = upgraded(job.versions)
        job.network.protocol = self.protocol or ""
        job.network.algorithm = self.algorithm or ""
        if self.channels is not None:
            job.network.channels_q16 = min(ONE, self.channels * ONE // 24)

    def witness(self) -> tuple[str, str]:
        """A tuning variable is set, the transports are the same, and large messages are slow."""
        name = next(iter(self.variables()), "NCCL_PROTO")
        return (
            f"""
            SELECT {said(name + " set by environment")} AND {SLOWER}
               AND NOT {said("via NET/Socket")} AND NOT {said("via SHM")}
            """,
            f"NCCL was told {name}, and collectives take longer over the same paths",
        )
