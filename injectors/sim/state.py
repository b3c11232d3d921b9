"""What the engine's backends share: where ranks are, what is given for a step, what comes out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from injectors.sim.compiled import Compiled
from injectors.sim.noise import Keys
from injectors.sim.program import STREAMS, THREADS, Conditions, Ints, LoaderShape, Program

WAKE_UP_NS = 3_000  # of a thread that slept until its stream was done


class State(NamedTuple):
    """Where every rank is; arrays of int64 ns, the last axis is the rank.

    Attributes:
        cpu: (threads, ranks), when the thread is free.
        free: (streams, ranks), when all work so far on the stream has ended.
        ready: (workers or 1, ranks), when the last batches were ready, by number modulo workers.
        taken: (workers * prefetch or 1, ranks), when the last batches were taken.
        carried: (streams, depth, ranks), ends of the last launches of earlier steps.
        outstanding: (streams,), whether any of `carried` may be later than the step's beginning.
    """

    cpu: Ints
    free: Ints
    ready: Ints
    taken: Ints
    carried: Ints
    outstanding: Ints


class Times(NamedTuple):
    """The arrays of a `StepTimes`, in its order."""

    host: Ints
    call: Ints
    done: Ints
    start: Ints
    end: Ints
    joined: Ints
    fetch_start: Ints
    ready: Ints


class Given(NamedTuple):
    """The arrays of `Conditions`, each contiguous and writable."""

    work_q16: Ints
    clock_q16: Ints
    memory_q16: Ints
    host_q16: Ints
    preempt_q16: Ints
    preempt_ns: Ints
    transfer_q16: Ints
    transfer_ns: Ints
    pause_ns: Ints
    fetch_ns: Ints
    overlap_q16: Ints
    contention_q16: Ints


class Interpreter(Protocol):
    """A backend: interprets one step after the other."""

    def run(
        self,
        keys: Keys,
        given: Given,
        state: State,
        times: Times,
        taken: int,
        absent: NDArray[np.bool_],
    ) -> None:
        """Interpret one step.

        Args:
            keys: (ops,), the key of each op in this step.
            given: The step's conditions.
            state: Where the ranks are; moved on in place.
            times: Written where an op is done, left alone elsewhere.
            taken: Batches that earlier steps have taken.
            absent: (ops,), which ops don't happen in this step.
        """
        ...


def beginning(compiled: Compiled, loader: LoaderShape) -> State:
    """Return the state of a job that has done nothing yet."""
    workers, depth = loader.workers, compiled.launches.depth
    streams = STREAMS if compiled.launches.counts.any() else 0

    def nothing(*rows: int) -> Ints:
        return np.zeros((*rows, compiled.ranks), np.int64)

    return State(
        cpu=nothing(THREADS),
        free=nothing(STREAMS),
        ready=nothing(max(workers, 1)),
        taken=nothing(max(workers * loader.prefetch, 1)),
        carried=nothing(streams, depth),
        outstanding=np.zeros(STREAMS, np.int64),
    )


def absent_times(compiled: Compiled) -> Times:
    """Return times of a step in which nothing has been done: -1 everywhere."""
    ops, batches = len(compiled.members), compiled.batches
    sizes = [ops] * 6 + [batches] * 2
    return Times(*(np.full((size, compiled.ranks), -1, np.int64) for size in sizes))


def shapes(program: Program) -> dict[str, tuple[int, ...]]:
    """Return the shape that each array of conditions must have."""
    rows = {
        "work_q16": len(program.work_rows),
        "transfer_q16": len(program.transfer_rows),
        "transfer_ns": len(program.transfer_rows),
        "pause_ns": len(program.pauses),
        "fetch_ns": program.batches,
    }
    ranks = program.ranks
    return {name: (rows[name], ranks) if name in rows else (ranks,) for name in Given._fields}


def given(conditions: Conditions, expected: dict[str, tuple[int, ...]]) -> Given:
    """Take a step's conditions; raises ValueError for an array of another shape."""
    found = {}
    for name, shape in expected.items():
        value = np.require(getattr(conditions, name), np.int64, ["C", "W"])
        if value.shape != shape:
            raise ValueError(f"{name} must be of shape {shape}, got {value.shape}")
        found[name] = value
    return Given(**found)
