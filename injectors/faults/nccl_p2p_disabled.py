"""GPUs of one host that can't reach each other directly."""

from __future__ import annotations

from typing import ClassVar

from injectors.faults.nccl_settings import SLOWER, NcclSettings, said


class NcclP2pDisabled(NcclSettings):
    """Let collectives within the host pass through its memory.

    Mechanism: NCCL_P2P_DISABLE=1, what NCCL does by itself where access control, IOMMU or a
    virtual machine forbids peer access.
    Versions: in all of NCCL 2 (NCCL_P2P_LEVEL=LOC is the same from 2.3.4); NCCL_NVLS_ENABLE
    (from 2.17) is set because NVLink SHARP would otherwise bypass it.
    Source: nccl#949; nccl#2171. Not measured yet: it needs two GPUs with peer access.
    """

    cause: ClassVar[str] = "nccl_p2p_disabled"

    def variables(self) -> dict[str, str]:
        """Switch off peer access."""
        return {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}

    def witness(self) -> tuple[str, str]:
        """Channels go over shared memory, and collectives of the same bytes take longer."""
        return (
            f"SELECT {said('via SHM')} AND {SLOWER}",
            "NCCL's channels go over host memory, and collectives are longer on every rank",
        )
