"""What a collective costs on CPUs: gloo's rings over the ranks' network interfaces."""

from __future__ import annotations

from injectors.sim.costs import rate_ns
from injectors.sim.machine import Machine
from injectors.sim.nccl import Choice, Operation, Shape

START_NS = 30_000
ROUNDS = {"all_reduce": 2}  # others go round once


def choose(operation: Operation, size: int, shape: Shape, machine: Machine) -> Choice:
    """Return the cost of a collective of `size` bytes, counted as in injectors.sim.nccl."""
    if shape.ranks < 2:
        return Choice("Ring", "Simple", START_NS, 0)
    rate, hop = machine.nic_bytes_per_s, machine.nic_latency_ns
    if operation in ("send", "recv"):
        return Choice("Ring", "Simple", START_NS + hop, rate_ns(size, rate))
    rounds, steps = ROUNDS.get(operation, 1), shape.ranks - 1
    bytes_ns = rate_ns(size * rounds * steps, rate * shape.ranks)
    return Choice("Ring", "Simple", START_NS + rounds * steps * hop, bytes_ns)
