"""The interpreter of op programs: when every op of a step happens on every rank.

    engine = Engine(program, LoaderShape(workers=4), seed=7)
    times = engine.step(0, conditions)

Ops are taken in program order, each on all of its ranks at once; what one does is written down
in docs/simulator.md. Time is int64 ns since the job began, factors are Q16, and the noise of an
op on a rank depends on (seed, step, path, rank) alone. There are two backends, numba and numpy,
that give the same numbers bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from injectors.sim.backends import wanted
from injectors.sim.compiled import Compiled, compile_program
from injectors.sim.noise import extend, key
from injectors.sim.noise_classes import Spread, ordinary
from injectors.sim.program import (
    QUEUE_DEPTH,
    STREAMS,
    THREADS,
    Conditions,
    Kind,
    LoaderShape,
    Op,
    Program,
    StepTimes,
)
from injectors.sim.program_checks import problems
from injectors.sim.recent import Recent
from injectors.sim.state import Given, Interpreter, absent_times, beginning, given, shapes

# By id of the program, which is kept so that no other one gets its id.
COMPILED = Recent[tuple[int, int], tuple[Program, Compiled]](6)
PER_OP = 6  # of the arrays of times; the others have a row for each batch


class Engine:
    """A program in progress; `step` moves all ranks through one step.

    Args:
        program: What a step does.
        loader: How batches are handed out.
        seed: Of all noise.
        backend: "numba", "numpy", or "auto": see injectors.sim.backends.
        spread: Tables of noise; None for those of real jobs.
        queue_depth: Launches that may be outstanding on a stream.

    Attributes:
        backend: The backend in use.

    Raises:
        ValueError: The program cannot be interpreted as written, or the backend is unknown.
        ImportError: The backend is "numba", which is not installed.
    """

    def __init__(
        self,
        program: Program,
        loader: LoaderShape,
        seed: int,
        backend: str = "auto",
        *,
        spread: Spread | None = None,
        queue_depth: int = QUEUE_DEPTH,
    ) -> None:
        self._compiled = _compiled(program, queue_depth)
        self._seed = seed
        self._shapes = shapes(program)
        self._state = beginning(self._compiled, loader)
        self._times = absent_times(self._compiled)
        self._taken = 0
        self._entry = _entry_threads(program)
        self.backend, self._interpreter = _interpreter(
            backend, self._compiled, spread or ordinary(), loader
        )

    def step(self, number: int, conditions: Conditions) -> StepTimes:
        """Interpret one step, which begins where the last one ended.

        Args:
            number: Of the step; part of the key of its noise.
            conditions: What differs in this step.

        Returns:
            Arrays that the next call writes into: copy what is to be kept (see `columns`).
        """
        keys = extend(key(self._seed, "engine", number), self._compiled.entity)
        arrays = given(conditions, self._shapes)
        absent = self._absent(arrays)
        self._interpreter.run(keys, arrays, self._state, self._times, self._taken, absent)
        self._taken += self._compiled.batches
        self._carry()
        return StepTimes(*self._times)

    def _absent(self, arrays: Given) -> NDArray[np.bool_]:
        """Find the ops that don't happen, since there is no work of theirs on any rank."""
        none = np.asarray(arrays.work_q16 == 0).all(axis=1)
        absent = np.asarray(none)[self._compiled.arrays.work]
        if absent.any():
            for times in self._times[:PER_OP]:
                times[absent] = -1
        return absent

    def _carry(self) -> None:
        """Keep the ends of launches that the next step's may have to wait for."""
        state, launches = self._state, self._compiled.launches
        begins = state.cpu[self._entry].min(axis=0)
        for stream in range(STREAMS):
            late = bool((state.free[stream] > begins).any()) and len(state.carried) > 0
            if late:
                if not state.outstanding[stream]:
                    state.carried[stream] = 0  # over before this step began
                state.carried[stream] = launches.carry(
                    stream, self._times.end, state.carried[stream]
                )
            state.outstanding[stream] = late


def _compiled(program: Program, queue_depth: int) -> Compiled:
    """Compile a program, or remember it; programs are never changed once they are written."""
    key = (id(program), queue_depth)
    return COMPILED.get(key, lambda: (program, _checked(program, queue_depth)))[1]


def _checked(program: Program, queue_depth: int) -> Compiled:
    for problem in problems(program):
        raise ValueError(problem)
    return compile_program(program, queue_depth)


def columns(times: StepTimes, ranks: Sequence[int]) -> StepTimes:
    """Copy the columns of some ranks out of a step's times."""
    chosen = np.asarray(ranks, np.int64)
    return StepTimes(**{f.name: getattr(times, f.name)[:, chosen] for f in fields(times)})


def _interpreter(
    backend: str, compiled: Compiled, spread: Spread, loader: LoaderShape
) -> tuple[str, Interpreter]:
    backend = wanted(backend)
    if backend != "numpy":
        try:
            from injectors.sim.engine_numba import NumbaInterpreter
        except ImportError:
            if backend == "numba":
                raise
        else:
            return "numba", NumbaInterpreter(compiled, spread, loader)
    from injectors.sim.engine_numpy import NumpyInterpreter

    return "numpy", NumpyInterpreter(compiled, spread, loader)


def _entry_threads(program: Program) -> list[int]:
    """Threads that may begin a step by themselves; others always wait for one first, by a JOIN."""
    first: dict[int, Op] = {}
    for op in program.ops:
        first.setdefault(int(op.thread), op)
    # A JOIN with a work row of its own doesn't happen in a step that has none of that work.
    entry = [thread for thread, op in first.items() if op.kind != Kind.JOIN or op.work]
    return sorted(entry) or list(range(THREADS))
