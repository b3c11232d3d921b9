"""Faults by the name of their cause; the mission's four families are made of these.

throttled_loader: storage_fetch_stall, dataloader_cpu_bound; slow_ring: slow_link;
unfused_kernels; host_contention: cpu_contention_colocated, memory_bandwidth_contention.
"""

from injectors.faults.base import Decoy, Fault, Injection, Run
from injectors.faults.cpu_contention import CpuContention
from injectors.faults.dataloader_cpu_bound import DataloaderCpuBound
from injectors.faults.memory_bandwidth import MemoryBandwidth
from injectors.faults.slow_link import SlowLink
from injectors.faults.storage_fetch_stall import StorageFetchStall
from injectors.faults.unfused_kernels import UnfusedKernels

FAULTS: dict[str, type[Fault]] = {
    fault.cause: fault
    for fault in (
        StorageFetchStall,
        DataloaderCpuBound,
        SlowLink,
        UnfusedKernels,
        CpuContention,
        MemoryBandwidth,
    )
}

__all__ = ["FAULTS", "Decoy", "Fault", "Injection", "Run"]
