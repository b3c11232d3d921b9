"""What is kept of an engine's steps while they go by, and the `Run` that is made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from injectors.sim.engine import columns
from injectors.sim.program import Conditions, Ints, Kind, Op, StepTimes
from injectors.sim.run import Collected, Run
from injectors.sim.serving.replica import Replica, Step

JOINING = (Kind.COLLECTIVE, Kind.SEND, Kind.RECV)


class EngineLog:
    """Notes the steps of one engine.

    Args:
        replica: The engine.
        sampled: Its ranks, counted from 0, whose every op is kept in the last steps.
        kept: How many of these steps.

    Attributes:
        steps: All of them.
    """

    def __init__(self, replica: Replica, sampled: Sequence[int], kept: int) -> None:
        self._replica, self._sampled = replica, tuple(sampled)
        self.steps: list[Step] = []
        self._conditions: list[Conditions] = []
        ops = list(enumerate(replica.program.ops))
        self._marks = [(i, op) for i, op in ops if op.kind == Kind.MARK]
        self._pauses = [(i, op) for i, op in ops if op.kind == Kind.PAUSE]
        self._joins = [(i, op) for i, op in ops if op.kind in JOINING]
        self._noted: list[tuple[Ints, Ints, Ints]] = []
        self._last: deque[tuple[int, StepTimes]] = deque(maxlen=kept)

    def note(self, step: Step) -> None:
        """Take note of a step that has just ended; the engine has not begun another one."""
        times = self._replica.times
        joins = [index for index, _ in self._joins]
        own = np.stack([x[joins] for x in (times.host, times.start, times.joined, times.end)])
        marks = times.end[[index for index, _ in self._marks]]
        pauses = times.host[[index for index, _ in self._pauses]]
        self._noted.append((marks, pauses, own))
        self._conditions.append(self._replica.conditions)
        self.steps.append(step)
        if self._sampled:
            self._last.append((step.number, columns(times, self._sampled)))

    def run(self, begin_ns: int, first: int) -> Run:
        """Make a run of the steps from number `first` on, in time since `begin_ns`."""
        replica = self._replica
        noted, count = self._noted[first:], len(self._noted) - first
        run = Run(replica.job, replica.program, self._sampled)
        marks, pauses, joins = (
            since(np.stack(arrays), begin_ns) for arrays in zip(*noted, strict=True)
        )
        run.marks = _by_path(self._marks, marks)
        run.pauses = _by_path(self._pauses, pauses)
        run.collectives = {
            op.path: Collected(*(joins[:, which, row] for which in range(4)))
            for row, (_, op) in enumerate(self._joins)
        }
        nothing = np.zeros((count, 0, replica.program.ranks), np.int64)
        run.taken = run.waited = run.fetch_start = run.ready = nothing
        run.kept = {
            number - first: _shifted(times, begin_ns)
            for number, times in self._last
            if number >= first
        }
        run.conditions = self._conditions[first:]
        run.devices = replica.dynamics.devices[first : first + count]
        return run


def _by_path(ops: Sequence[tuple[int, Op]], values: Ints) -> dict[str, Ints]:
    """Give each op its times, (steps, ranks), of `values` (steps, ops, ranks)."""
    return {op.path: values[:, row] for row, (_, op) in enumerate(ops)}


def since(times_ns: Ints, begin_ns: int) -> Ints:
    """Count times from `begin_ns` on; what did not happen stays -1.

    >>> since(np.array([5, -1, 12]), 5).tolist()
    [0, -1, 7]
    """
    return np.where(times_ns < 0, -1, np.maximum(times_ns - begin_ns, 0))


def _shifted(times: StepTimes, begin_ns: int) -> StepTimes:
    return StepTimes(**{f.name: since(getattr(times, f.name), begin_ns) for f in fields(times)})
