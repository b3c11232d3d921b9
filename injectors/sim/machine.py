"""Machines as numbers: GPUs, hosts and networks at nominal speed, with sources.

Sources: NVIDIA data sheets for dense peak rates and memory bandwidth; the efficiencies and launch
times were measured on public traces of A100 and H100 jobs (see docs/simulator.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """One GPU model; `kernels` is the architecture's prefix in kernel names."""

    name: str
    compute_capability: tuple[int, int]
    kernels: str
    multiprocessors: int
    memory_bytes: int
    bf16_flops_per_s: int
    tf32_flops_per_s: int
    fp32_flops_per_s: int
    memory_bytes_per_s: int
    nvlink_bytes_per_s: int  # of all links, one direction
    pcie_generation: int
    pcie_bytes_per_s: int  # what a pinned copy reaches
    power_limit_w: int
    idle_w: int
    sm_clock_mhz: int
    memory_clock_mhz: int
    compute_efficiency_q16: int = 47186  # 0.72 of the peak in large products
    memory_efficiency_q16: int = 55706  # 0.85 of the bandwidth


GPUS: dict[str, Gpu] = {
    "a100": Gpu(
        name="NVIDIA A100-SXM4-80GB",
        compute_capability=(8, 0),
        kernels="ampere",
        multiprocessors=108,
        memory_bytes=85_899_345_920,
        bf16_flops_per_s=312 * 10**12,
        tf32_flops_per_s=156 * 10**12,
        fp32_flops_per_s=19_500 * 10**9,
        memory_bytes_per_s=2_039 * 10**9,
        nvlink_bytes_per_s=300 * 10**9,
        pcie_generation=4,
        pcie_bytes_per_s=25 * 10**9,
        power_limit_w=400,
        idle_w=60,
        sm_clock_mhz=1410,
        memory_clock_mhz=1593,
    ),
    "h100": Gpu(
        name="NVIDIA H100 80GB HBM3",
        compute_capability=(9, 0),
        kernels="sm90",
        multiprocessors=132,
        memory_bytes=85_520_809_984,
        bf16_flops_per_s=989 * 10**12,
        tf32_flops_per_s=494 * 10**12,
        fp32_flops_per_s=67 * 10**12,
        memory_bytes_per_s=3_350 * 10**9,
        nvlink_bytes_per_s=450 * 10**9,
        pcie_generation=5,
        pcie_bytes_per_s=52 * 10**9,
        power_limit_w=700,
        idle_w=75,
        sm_clock_mhz=1980,
        memory_clock_mhz=2619,
    ),
    "h200": Gpu(
        name="NVIDIA H200",
        compute_capability=(9, 0),
        kernels="sm90",
        multiprocessors=132,
        memory_bytes=150_754_820_096,
        bf16_flops_per_s=989 * 10**12,
        tf32_flops_per_s=494 * 10**12,
        fp32_flops_per_s=67 * 10**12,
        memory_bytes_per_s=4_800 * 10**9,
        nvlink_bytes_per_s=450 * 10**9,
        pcie_generation=5,
        pcie_bytes_per_s=52 * 10**9,
        power_limit_w=700,
        idle_w=78,
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
    ),
}


@dataclass(frozen=True)
class Machine:
    """What a job runs on: `gpu` None means that the ranks compute on CPU cores.

    Attributes:
        gpus_per_host: Ranks of a host at most.
        cores: Usable CPU cores of a host.
        nic_bytes_per_s: Of one rank's share of the network, one direction.
        nic_latency_ns: One way, between hosts.
        storage_bytes_per_s: What a host reads from storage at most.
        cpu_flops_per_s: Of one core, where ranks compute on CPUs.
        cpu_memory_bytes_per_s: Of one core.
    """

    name: str
    gpu: Gpu | None
    gpus_per_host: int
    cores: int
    memory_bytes: int
    nic_bytes_per_s: int
    nic_latency_ns: int
    storage_bytes_per_s: int
    cpu_flops_per_s: int = 40 * 10**9
    cpu_memory_bytes_per_s: int = 10 * 10**9


def _gpu_machine(name: str, cores: int, nic_gbit: int) -> Machine:
    return Machine(
        name=name,
        gpu=GPUS[name],
        gpus_per_host=8,
        cores=cores,
        memory_bytes=2 * 10**12,
        nic_bytes_per_s=nic_gbit * 10**9 // 8,
        nic_latency_ns=5_000,
        storage_bytes_per_s=8 * 10**9,
    )


MACHINES: dict[str, Machine] = {
    "a100": _gpu_machine("a100", cores=128, nic_gbit=200),
    "h100": _gpu_machine("h100", cores=192, nic_gbit=400),
    "h200": _gpu_machine("h200", cores=192, nic_gbit=400),
    "cpu": Machine(
        name="cpu",
        gpu=None,
        gpus_per_host=4,
        cores=2,
        memory_bytes=24 * 10**9,
        nic_bytes_per_s=10 * 10**9 // 8,
        nic_latency_ns=20_000,
        storage_bytes_per_s=10**9,
    ),
}
