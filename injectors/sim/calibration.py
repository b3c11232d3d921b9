"""The speeds of a machine from one healthy recording of a job on it.

The twin of the job is simulated with speeds that are first those of Speeds and then corrected by
what the recording says, phase by phase:

- the loader's reading and decoding are recorded as such;
- all of a rank's own work is scaled by the forward pass, which waits for nobody;
- what else a step takes is communication: rounds of collectives, whatever their bytes.

Nothing of a recording of a fault goes into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from injectors.scenario import Scenario
from injectors.sim.job import Job
from injectors.sim.machine import MACHINES
from injectors.sim.program import Program
from injectors.sim.run import Run, simulate
from injectors.sim.twin import Speeds
from injectors.sim.workloads.cpu import compile_cpu, set_up
from injectors.sim.workloads.cpu.loading import chunk_decode_ns, repeated_decode_ns
from injectors.workloads.image_classifier import ImageClassifier

ROUNDS = 6  # of correction; each leaves a small part of the error of the one before
STEPS = 12  # simulated for each
LEAST_NS, MOST_NS = 20_000, 20_000_000  # of a round of collectives
LARGE_BYTES = 4 * 2**20  # collectives whose time is that of their bytes


@dataclass(frozen=True)
class Healthy:
    """What a step of a healthy job takes, mean over ranks of medians over steps, ns."""

    step: float
    forward: float
    wait: float


def calibrated(scenario: Scenario, tables: Mapping[str, pd.DataFrame]) -> Speeds:
    """Return the speeds under which the scenario's healthy twin takes what its job took.

    Args:
        scenario: Of the job.
        tables: `steps` of a healthy recording, and `loader` and `collectives` where it has them.
    """
    measured = _measured(tables["steps"])
    speeds = _loader(scenario, Speeds(), tables.get("loader"), tables["steps"])
    speeds = _bytes(speeds, tables.get("collectives"), scenario.ranks)
    for _ in range(ROUNDS):
        speeds = _corrected(scenario, speeds, measured)
    return speeds


def twin_job(scenario: Scenario, speeds: Speeds, seed: int, steps: int) -> Job:
    """Return the scenario's healthy twin on a machine of given speeds."""
    workload = scenario.build_workload()
    job = Job(workload, MACHINES["cpu"], scenario.places, seed, steps, profiled_steps=1)
    set_up(job, scenario, speeds)
    return job


def _measured(steps: pd.DataFrame) -> Healthy:
    middle = steps.groupby("rank")[["duration_ns", "forward_ns", "data_wait_ns"]].median().mean()
    return Healthy(*(float(middle[name]) for name in middle.index))


def _loader(
    scenario: Scenario, speeds: Speeds, loader: pd.DataFrame | None, steps: pd.DataFrame
) -> Speeds:
    model = scenario.build_workload()
    if loader is None or not len(loader) or not isinstance(model, ImageClassifier):
        return speeds
    read, cpu = (int(loader[name].median()) for name in ("read_ns", "cpu_ns"))
    own = cpu - repeated_decode_ns(model, 1)
    if model.layout == "packed":
        own, read = own - chunk_decode_ns(model, 0), 0
    # A batch that was ready took what is taken at least.
    unpack = int(steps["data_wait_ns"].quantile(0.1))
    return replace(speeds, read_ns=read, decode_ns=max(own, 1), unpack_ns=unpack)


def _bytes(speeds: Speeds, collectives: pd.DataFrame | None, ranks: int) -> Speeds:
    """Take the rate of large exchanges from those that took least."""
    if collectives is None or not (large := collectives["bytes"] >= LARGE_BYTES).any():
        return speeds
    found = collectives[large]
    took = (found["completed_ns"] - found["created_ns"] - speeds.collective_ns).clip(lower=1)
    rate = (found["bytes"] * (ranks - 1) / ranks / took).quantile(0.75) * 10**9
    return replace(speeds, collective_bytes_per_s=int(rate))


def _corrected(scenario: Scenario, speeds: Speeds, measured: Healthy) -> Speeds:
    job = twin_job(scenario, speeds, seed=1, steps=STEPS)
    program = compile_cpu(job)
    run = simulate(job, program, (0,))
    now = _simulated(run, program)
    if scenario.ranks == 1:
        own = measured.step - measured.wait
        return _scaled(speeds, own / (now.step - now.wait))
    if now.forward:
        speeds = _scaled(speeds, measured.forward / now.forward)
    else:  # stages of a pipeline have no common forward pass
        return _scaled(speeds, measured.step / now.step)
    rounds = max(1, _rounds(program))
    change = (measured.step - now.step - (measured.forward - now.forward) * 2.8) / rounds
    latency = min(max(speeds.collective_ns + int(change / 2), LEAST_NS), MOST_NS)
    return replace(speeds, collective_ns=latency)


def _scaled(speeds: Speeds, longer: float) -> Speeds:
    """Let all of a rank's own work take so many times as long."""
    return replace(
        speeds,
        flops_per_s=int(speeds.flops_per_s / longer),
        memory_bytes_per_s=int(speeds.memory_bytes_per_s / longer),
        pointwise_q16=int(speeds.pointwise_q16 * longer),
        op_ns=int(speeds.op_ns * longer),
    )


def _rounds(program: Program) -> int:
    """Rounds of all collectives of a step."""
    found = 0
    for op in program.ops:
        if op.label.collective:
            twice = 2 if op.label.collective.op.startswith("allreduce") else 1
            found += twice * (op.label.collective.world - 1)
    return found


def _simulated(run: Run, program: Program) -> Healthy:
    ends, marks = run.marks["end"], run.marks
    step = np.median(np.diff(ends, axis=0), axis=0).mean()
    forward = 0.0
    for number in range(64):
        if (end := marks.get(f"forward/{number}")) is None:
            break
        begin = marks["data"] if not number else marks[f"backward/{number - 1}"]
        forward += float(np.median((end - begin)[1:], axis=0).mean())
    wait = float(np.median((marks["data"] - marks["begin"])[1:], axis=0).mean())
    return Healthy(float(step), forward, wait)
