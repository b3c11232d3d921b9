"""How copies, communication and waiting appear in a trace."""

from __future__ import annotations

from typing import Literal

from injectors.sim import kernels
from injectors.sim.launches import Exchange, Launches
from injectors.sim.nccl import Choice
from injectors.sim.program import Collective, Label

Way = Literal["HtoD", "DtoH", "DtoD"]
LARGE_BYTES = 2**20
CHANNELS, FEW_CHANNELS = 24, 2  # blocks of NCCL's kernel for large and for small messages
C10D = {
    "all_reduce": "c10d::allreduce_",
    "all_gather": "c10d::_allgather_base_",
    "reduce_scatter": "c10d::_reduce_scatter_base_",
    "all_to_all": "c10d::alltoall_base_",
    "broadcast": "c10d::broadcast_",
    "send": "c10d::send",
    "recv": "c10d::recv_",
}
NCCL_OPS = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_allv",
    "broadcast": "broadcast",
    "send": "send",
    "recv": "recv",
}


def silent(runtime: str | None = None) -> Label:
    """Label what launches nothing: a runtime call at most."""
    return Label(kernel=None, runtime=runtime)


def copy_label(size: int, way: Way, pinned: bool, cpu_ops: tuple[str, ...]) -> Label:
    """Label a copy of `size` bytes."""
    host = "Pinned" if pinned else "Pageable"
    ends = {"HtoD": f"{host} -> Device", "DtoH": f"Device -> {host}", "DtoD": "Device -> Device"}
    name = f"Memcpy {way} ({ends[way]})"
    return Label(cpu_ops, name, "gpu_memcpy", "cudaMemcpyAsync", bytes=size)


def exchange_label(
    exchange: Exchange, found: Choice, launches: Launches, world: int, everybody: bool
) -> Label:
    """Label communication among `world` ranks; `everybody`: these are all of the job."""
    operation, size = exchange.operation, exchange.bytes
    words = Collective(
        op=NCCL_OPS[operation],
        bytes=size,
        dtype=launches.dtype,
        group="default_pg" if everybody else exchange.group,
        world=world,
    )
    elements = size // launches.costs.element_bytes
    if launches.costs.machine.gpu is None:
        return Label((C10D[operation],), runtime=None, dims=((elements,),), collective=words)
    return Label(
        cpu_ops=(C10D[operation], "record_param_comms"),
        kernel=kernels.nccl(operation, launches.precision, found.algorithm == "Tree"),
        runtime="cudaLaunchKernelExC",
        dims=((elements,),),
        dtype=launches.dtype,
        grid=(CHANNELS if size >= LARGE_BYTES else FEW_CHANNELS, 1, 1),
        block=(288 if found.protocol == "LL" else 544, 1, 1),
        registers=96,
        shared_bytes=82_240,
        collective=words,
    )
