"""How fast op programs are interpreted; a task is one op on one rank in one step."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys

from injectors.sim.conditions import Dynamics
from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.run import engine_of
from injectors.sim.workloads.data_parallel import DdpTransformer
from tests.bench.figure import Figure, seconds

RANKS, MANY_RANKS = 64, 1024
STEPS = {"numba": 60, "numpy": 15}
LIMIT_NS = {"numba": 50.0, "numpy": 500.0}
LIMIT_GIB = 2.0


def measure() -> list[Figure]:
    """Time of a task with each backend that is installed, and the memory of a large job."""
    backends = [name for name in LIMIT_NS if name == "numpy" or importlib.util.find_spec(name)]
    figures = [
        Figure(f"simulated task, {name}, {RANKS} ranks, ns", task_ns(name), LIMIT_NS[name])
        for name in backends
    ]
    words = f"two simulated steps of {MANY_RANKS} ranks, peak GiB"
    return [*figures, Figure(words, _peak_gib(), LIMIT_GIB)]


def task_ns(backend: str) -> float:
    """Wall time of a task: the best of some steps, since cores are shared with others."""
    job = make_job(RANKS)
    program = job.workload.compile(job)  # type: ignore[attr-defined]
    engine, conditions = engine_of(job, program, backend), Dynamics(job, program).conditions(0)
    engine.step(0, conditions)
    best = min(seconds(lambda: engine.step(1, conditions)) for _ in range(STEPS[backend]))
    return best * 1e9 / (len(program.ops) * RANKS)


def make_job(ranks: int) -> Job:
    """Return a data-parallel job of a transformer."""
    workload, machine = DdpTransformer(), MACHINES["h100"]
    places = workload.places(ranks, machine)
    job = Job(workload, machine, places, seed=1, steps=2, profiled_steps=1)
    workload.set_up(job)
    return job


def _peak_gib() -> float:
    """Peak memory of a process that takes two steps of a large job with numpy."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.bench.simulator"], check=True, capture_output=True, text=True
    )
    return int(found.stdout) / 2**20


def main() -> None:
    """Take two steps of a large job and print the peak memory in KiB."""
    job = make_job(MANY_RANKS)
    program = job.workload.compile(job)  # type: ignore[attr-defined]
    engine, dynamics = engine_of(job, program, "numpy"), Dynamics(job, program)
    for step in range(2):
        dynamics.observe(step, engine.step(step, dynamics.conditions(step)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
