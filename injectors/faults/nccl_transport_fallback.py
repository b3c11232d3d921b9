"""Collectives over sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from injectors.faults.nccl_settings import SLOWER, NcclSettings, said
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class NcclTransportFallback(NcclSettings):
    """Leave NCCL nothing but TCP sockets.

    Mechanism: InfiniBand, shared memory and peer access are switched off, as where a container
    hides the devices, so that NCCL falls back to sockets even between the GPUs of one host.
    Versions: NCCL_IB_DISABLE, NCCL_SHM_DISABLE and NCCL_P2P_DISABLE are in all of NCCL 2;
    NCCL_NVLS_ENABLE (from 2.17) is set because NVLink SHARP would otherwise bypass them.
    Source: AReaL#639; LlamaFactory#6111. Not measured yet: it needs two GPUs.
    """

    cause: ClassVar[str] = "nccl_transport_fallback"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_hosts: ClassVar[int] = 2

    def variables(self) -> dict[str, str]:
        """Switch off all transports but sockets."""
        return {
            "NCCL_IB_DISABLE": "1",
            "NCCL_SHM_DISABLE": "1",
            "NCCL_P2P_DISABLE": "1",
            "NCCL_NVLS_ENABLE": "0",
        }

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """There must be something better to fall back from."""
        sockets = scenario.build_workload().model_dump().get("transport") == "socket"
        return "its hosts are joined by sockets anyway" if sockets else None

    def perturb(self, job: Job) -> None:
        """Leave sockets between hosts."""
        job.network.transport = "socket"

    def witness(self) -> tuple[str, str]:
        """Channels go over sockets, and collectives of the same bytes take longer everywhere."""
        return (
            f"SELECT {said('via NET/Socket')} AND {SLOWER}",
            "NCCL's channels go over sockets, and collectives are longer on every rank",
        )
