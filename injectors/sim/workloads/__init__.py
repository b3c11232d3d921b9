"""Simulated workloads by name."""

from injectors.sim.workloads.base import SimulatedWorkload
from injectors.sim.workloads.data_parallel import DdpTransformer

SIMULATED: dict[str, type[SimulatedWorkload]] = {
    "ddp_transformer": DdpTransformer,
}

__all__ = ["SIMULATED", "SimulatedWorkload"]
