"""From a scenario's job to what is recorded of it, training and serving alike."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from cases.bundle import RunData
from injectors.faults.base import Injection
from injectors.scenario import Scenario
from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.program import Program
from injectors.sim.recent import Recent
from injectors.sim.workloads import SimulatedWorkload

PROGRAMS = Recent[str, Program](4)  # a label and the run that is shipped have the same one
# Many faults change what surrounds a program and not the program: what is worked out of one (see
# injectors.sim.engine) then serves all.
WRITTEN: deque[Program] = deque(maxlen=6)


def set_up(scenario: Scenario, seed: int) -> Job:
    """Return the scenario's healthy job."""
    workload = scenario.build_workload()
    job = Job(
        workload=workload,
        machine=MACHINES[scenario.machine],
        places=scenario.places,
        seed=seed,
        steps=scenario.steps,
        profiled_steps=scenario.profiled_steps,
    )
    if isinstance(workload, SimulatedWorkload):
        job.network.transport = workload.transport
        workload.set_up(job)
    else:
        from injectors.sim.workloads.cpu import set_up as set_up_cpu

        set_up_cpu(job, scenario)
    return job


def perturb(job: Job, injection: Injection) -> None:
    """Break the job; a twin of a real one is broken as the real one would be."""
    if job.twin is None:
        injection.perturb(job)
        return
    from injectors.sim.workloads.cpu.injected import perturb as perturb_twin

    perturb_twin(job, injection)


def compiled(job: Job) -> Program:
    """Write the job's step as an op program; it is the same for all seeds and versions."""
    return PROGRAMS.get(repr(replace(job, seed=0, versions={})), lambda: _once(_compiled(job)))


def _once(program: Program) -> Program:
    """Return the same one for programs that are equal."""
    for known in WRITTEN:
        if known == program:
            return known
    WRITTEN.append(program)
    return program


def _compiled(job: Job) -> Program:
    if isinstance(job.workload, SimulatedWorkload):
        return job.workload.compile(job)
    from injectors.sim.workloads.cpu import compile_cpu

    return compile_cpu(job)


def measure(job: Job) -> float:
    """Return the job's mean seconds of a step (serving: of a generated token)."""
    if job.workload.kind == "inference":
        from injectors.sim.serving import seconds_per_token

        return seconds_per_token(job)
    from injectors.sim.run import seconds

    return seconds(job, compiled(job))


def record(job: Job, sampled: tuple[int, ...]) -> tuple[RunData, float]:
    """Run the job; returns what is recorded of it and the measure that labels compare.

    Args:
        job: What to run.
        sampled: Ranks that get traces; there may be none.
    """
    if job.workload.kind == "inference":
        from injectors.sim.serving import record_serving

        return record_serving(job, sampled)
    from injectors.sim.kineto import write_traces
    from injectors.sim.run import mean_seconds, simulate
    from injectors.sim.tables import tables

    run = simulate(job, compiled(job), sampled)
    elapsed = run.step_ns[1:].sum(axis=0)
    traces = write_traces(run, sampled) if sampled else {}
    return RunData(tables(run), traces), mean_seconds(elapsed, job.steps - 1)
