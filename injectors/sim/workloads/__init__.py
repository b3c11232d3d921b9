"""Simulated workloads by name."""

from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.data_parallel import DdpTransformer
from injectors.sim.workloads.diffusion import Diffusion
from injectors.sim.workloads.experts import MoeTransformer
from injectors.sim.workloads.fully_sharded import FsdpTransformer
from injectors.sim.workloads.pipeline import PipelineTransformer
from injectors.sim.workloads.recommender import Recommender
from injectors.sim.workloads.serving import DisaggregatedServing, LlmServing
from injectors.sim.workloads.tensor_parallel import TensorParallelTransformer
from injectors.sim.workloads.vision import Vision

SIMULATED: dict[str, type[SimulatedWorkload]] = {
    "ddp_transformer": DdpTransformer,
    "diffusion": Diffusion,
    "disaggregated_serving": DisaggregatedServing,
    "fsdp_transformer": FsdpTransformer,
    "llm_serving": LlmServing,
    "moe_transformer": MoeTransformer,
    "pipeline_transformer": PipelineTransformer,
    "recommender": Recommender,
    "tensor_parallel_transformer": TensorParallelTransformer,
    "vision": Vision,
}

__all__ = ["SIMULATED", "SimulatedWorkload"]
