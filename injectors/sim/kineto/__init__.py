"""Traces of simulated runs, as torch.profiler writes them (Kineto JSON)."""

from injectors.sim.kineto.header import Within
from injectors.sim.kineto.writer import write_traces

__all__ = ["Within", "write_traces"]
