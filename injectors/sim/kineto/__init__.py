"""Traces of simulated runs, as torch.profiler writes them (Kineto JSON)."""

from injectors.sim.kineto.writer import write_traces

__all__ = ["write_traces"]
