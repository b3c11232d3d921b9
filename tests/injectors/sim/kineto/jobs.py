"""Small simulated jobs for tests of traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.run import Run, simulate
from injectors.sim.workloads import SIMULATED


def small_run(
    name: str = "ddp_transformer",
    ranks: int = 8,
    sampled: tuple[int, ...] = (0, 5),
    edit: Callable[[Job], None] = lambda job: None,
    steps: int = 4,
    profiled_steps: int = 2,
    **parameters: Any,
) -> Run:
    """Simulate a few steps, the last ones of them profiled."""
    machine, workload = MACHINES["h100"], SIMULATED[name](**parameters)
    places = workload.places(ranks, machine)
    job = Job(workload, machine, places, 11, steps, profiled_steps)
    workload.set_up(job)
    edit(job)
    return simulate(job, workload.compile(job), sampled)
