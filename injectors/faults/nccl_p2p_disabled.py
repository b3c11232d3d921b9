"""GPUs of one host that can't reach each other directly."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from injectors.faults.nccl_settings import SLOWER, NcclSettings, said
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class NcclP2pDisabled(NcclSettings):
    """Let collectives within the host pass through its memory.

    Mechanism: NCCL_P2P_DISABLE=1, what NCCL does by itself where access control, IOMMU or a
    virtual machine forbids peer access.
    Versions: in all of NCCL 2 (NCCL_P2P_LEVEL=LOC is the same from 2.3.4); NCCL_NVLS_ENABLE
    (from 2.17) is set because NVLink SHARP would otherwise bypass it.
    Source: nccl#949; nccl#2171. Not measured yet: it needs two GPUs with peer access.
    """

    cause: ClassVar[str] = "nccl_p2p_disabled"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING

    def variables(self) -> dict[str, str]:
        """Switch off peer access."""
        return {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}

    def perturb(self, job: Job) -> None:
        """Let collectives pass through host memory."""
        job.network.peer_access = False

    def witness(self) -> tuple[str, str]:
        """Channels go over shared memory, and collectives of the same bytes take longer."""
        return (
            f"SELECT {said('via SHM')} AND {SLOWER}",
            "NCCL's channels go over host memory, and collectives are longer on every rank",
        )
