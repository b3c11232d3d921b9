"""Small servers for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.serving import seconds_per_token
from injectors.sim.workloads.serving import DisaggregatedServing, LlmServing


def serving_job(
    ranks: int = 1,
    seed: int = 1,
    steps: int = 24,
    machine: str = "h100",
    disaggregated: bool = False,
    **parameters: Any,
) -> Job:
    """Return a healthy job; `parameters` are the workload's."""
    workload = (DisaggregatedServing if disaggregated else LlmServing)(**parameters)
    places = workload.places(ranks, MACHINES[machine])
    job = Job(workload, MACHINES[machine], places, seed, steps, profiled_steps=1)
    workload.set_up(job)
    return job


def slowdown(break_it: Callable[[Job], None], seeds: int = 3, **settings: Any) -> float:
    """Return mean seconds of a token with a change over those without, on the same seeds."""
    ratios = []
    for seed in range(seeds):
        job = serving_job(seed=seed, **settings)
        before = seconds_per_token(job)
        break_it(job)
        ratios.append(seconds_per_token(job) / before)
    return sum(ratios) / seeds


def turned(**settings: Any) -> Callable[[Job], None]:
    """Return a change of the job's serving settings."""

    def turn(job: Job) -> None:
        for name, value in settings.items():
            assert hasattr(job.serving, name), name
            setattr(job.serving, name, value)

    return turn
