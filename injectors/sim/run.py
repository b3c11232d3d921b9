"""Running a simulated job: step after step, and what of it is kept.

`seconds` is the fast way that labels need: nothing is kept but when steps ended. `simulate` keeps
what tables and traces are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from injectors.sim.conditions import DeviceState, Dynamics
from injectors.sim.engine import Engine
from injectors.sim.fetches import Fetches
from injectors.sim.job import Job
from injectors.sim.program import Conditions, Ints, Kind, LoaderShape, Program, StepTimes

END = "end"  # path of the MARK with which every step ends
TIMES = ("host", "call", "done", "start", "end", "joined")


@dataclass
class Collected:
    """When one kind of thing happened; arrays (steps, ranks) of int64 ns, -1 where it did not.

    Attributes:
        host: The rank asked for it.
        start: Its own kernel began to wait or to work.
        joined: The last member had come.
        end: It was done.
    """

    host: Ints
    start: Ints
    joined: Ints
    end: Ints


@dataclass
class Run:
    """What is kept of a simulated training run; times in ns since its start.

    Attributes:
        sampled: Ranks whose every op is kept, in the profiled steps.
        marks: Path of a MARK -> (steps, ranks), when thread and device had come so far.
        collectives: Path of a communication op -> its times.
        pauses: Path of a PAUSE -> (steps, ranks), when the thread came to it.
        taken: (steps, batches, ranks), when the thread had the batch; `waited` what it waited.
        fetch_start, ready: (steps, batches, ranks), the loader's work on it.
        kept: Profiled step -> its times, columns are the sampled ranks.
        fetches: The loader's own work, of every step.
        conditions, devices: Of every step.
    """

    job: Job
    program: Program
    sampled: tuple[int, ...]
    marks: dict[str, Ints] = field(default_factory=dict)
    collectives: dict[str, Collected] = field(default_factory=dict)
    pauses: dict[str, Ints] = field(default_factory=dict)
    taken: Ints = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    waited: Ints = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    fetch_start: Ints = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    ready: Ints = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    kept: dict[int, StepTimes] = field(default_factory=dict)
    fetches: list[Fetches] = field(default_factory=list)
    conditions: list[Conditions] = field(default_factory=list)
    devices: list[DeviceState] = field(default_factory=list)

    @property
    def step_ns(self) -> Ints:
        """Wall time of each step on each rank, (steps, ranks)."""
        ends = self.marks[END]
        return np.diff(ends, axis=0, prepend=np.zeros((1, ends.shape[1]), np.int64))


def engine_of(job: Job, program: Program, backend: str = "auto") -> Engine:
    """Return an engine for the job, at time zero."""
    shape = LoaderShape(job.loader.workers, job.loader.prefetch)
    return Engine(program, shape, job.seed, backend)


def dynamics_of(job: Job, program: Program) -> Dynamics:
    """Return the conditions of the job's steps; those of a twin are its own."""
    if job.twin is None:
        return Dynamics(job, program)
    from injectors.sim.workloads.cpu.dynamics import TwinDynamics

    return TwinDynamics(job, program)


def seconds(job: Job, program: Program, backend: str = "auto") -> float:
    """Return the mean seconds of a step over all ranks, the first step left out."""
    engine, dynamics = engine_of(job, program, backend), dynamics_of(job, program)
    last = _index_of_end(program)
    first_end = np.zeros(program.ranks, np.int64)
    times = None
    for step in range(job.steps):
        times = engine.step(step, dynamics.conditions(step))
        dynamics.observe(step, times)
        if step == 0:
            first_end = times.end[last].copy()
    assert times is not None
    return mean_seconds(times.end[last] - first_end, job.steps - 1)


def mean_seconds(elapsed_ns: Ints, steps: int) -> float:
    """Mean over ranks of the time of one of `steps` steps; exact but for one rounding."""
    return int(elapsed_ns.sum()) / (len(elapsed_ns) * steps * 10**9)


def simulate(job: Job, program: Program, sampled: tuple[int, ...], backend: str = "auto") -> Run:
    """Run the job and keep what is recorded of it."""
    engine, dynamics = engine_of(job, program, backend), dynamics_of(job, program)
    run = Run(job, program, sampled)
    keeper = _Keeper(run)
    for step in range(job.steps):
        conditions = dynamics.conditions(step)
        times = engine.step(step, conditions)
        dynamics.observe(step, times)
        run.conditions.append(conditions)
        run.fetches.append(dynamics.fetches_of(step))
        keeper.keep(step, times)
    run.devices = dynamics.devices
    return run


class _Keeper:
    """Copies what is kept out of the engine's arrays, which the next step overwrites."""

    def __init__(self, run: Run) -> None:
        self._run, program = run, run.program
        steps, ranks = run.job.steps, program.ranks
        self._marks: list[int] = []
        self._joins: list[int] = []
        self._batches: list[int] = []
        self._pauses: list[int] = []
        for index, op in enumerate(program.ops):
            if op.kind == Kind.MARK:
                self._marks.append(index)
                run.marks[op.path] = np.full((steps, ranks), -1, np.int64)
            elif op.kind in (Kind.COLLECTIVE, Kind.SEND, Kind.RECV):
                self._joins.append(index)
                run.collectives[op.path] = Collected(
                    *(np.full((steps, ranks), -1, np.int64) for _ in range(4))
                )
            elif op.kind == Kind.NEXT_BATCH:
                self._batches.append(index)
            elif op.kind == Kind.PAUSE:
                self._pauses.append(index)
                run.pauses[op.path] = np.full((steps, ranks), -1, np.int64)
        shape = (steps, program.batches, ranks)
        run.taken, run.waited, run.fetch_start, run.ready = (
            np.full(shape, -1, np.int64) for _ in range(4)
        )

    def keep(self, step: int, times: StepTimes) -> None:
        run, ops = self._run, self._run.program.ops
        for index in self._marks:
            run.marks[ops[index].path][step] = times.end[index]
        for index in self._joins:
            found = run.collectives[ops[index].path]
            found.host[step], found.start[step] = times.host[index], times.start[index]
            found.joined[step], found.end[step] = times.joined[index], times.end[index]
        for index in self._pauses:
            run.pauses[ops[index].path][step] = times.host[index]
        for index in self._batches:
            batch = ops[index].batch
            run.taken[step, batch] = times.done[index]
            # Waiting ends when the batch is there; unpacking it is no wait.
            late = np.maximum(times.ready[batch] - times.host[index], 0)
            run.waited[step, batch] = np.where(times.host[index] < 0, -1, late)
        if program_batches := run.program.batches:
            run.fetch_start[step] = times.fetch_start[:program_batches]
            run.ready[step] = times.ready[:program_batches]
        if step >= run.job.steps - run.job.profiled_steps:
            columns = list(run.sampled)
            run.kept[step] = StepTimes(
                **{name: getattr(times, name)[:, columns].copy() for name in TIMES},
                fetch_start=times.fetch_start[:, columns].copy(),
                ready=times.ready[:, columns].copy(),
            )


def _index_of_end(program: Program) -> int:
    return next(index for index, op in enumerate(program.ops) if op.path == END)
