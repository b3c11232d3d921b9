"""Simulated workloads by name."""

from injectors.sim.workloads.base import SimulatedWorkload

SIMULATED: dict[str, type[SimulatedWorkload]] = {}

__all__ = ["SIMULATED", "SimulatedWorkload"]
