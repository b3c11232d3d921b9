"""Simulated workloads by name."""

from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.data_parallel import DdpTransformer
from injectors.sim.workloads.experts import MoeTransformer
from injectors.sim.workloads.fully_sharded import FsdpTransformer
from injectors.sim.workloads.pipeline import PipelineTransformer
from injectors.sim.workloads.tensor_parallel import TensorParallelTransformer

SIMULATED: dict[str, type[SimulatedWorkload]] = {
    "ddp_transformer": DdpTransformer,
    "fsdp_transformer": FsdpTransformer,
    "moe_transformer": MoeTransformer,
    "pipeline_transformer": PipelineTransformer,
    "tensor_parallel_transformer": TensorParallelTransformer,
}

__all__ = ["SIMULATED", "SimulatedWorkload"]
