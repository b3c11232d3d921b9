"""How far a job has come: when its steps begin, and what a step takes."""

from __future__ import annotations

import numpy as np

from injectors.sim.program import Ints, Kind, Program, StepTimes


class Progress:
    """When ranks begin their next step.

    Args:
        program: Of the steps.
        step_ns: What the first step is expected to take.

    Attributes:
        begin_ns: (ranks,).
        length_ns: What a step takes without what goes by the clock.
    """

    def __init__(self, program: Program, step_ns: int) -> None:
        marks = [i for i, op in enumerate(program.ops) if op.kind == Kind.MARK and op.ranks is None]
        self._last = marks[-1] if marks else None
        self.begin_ns = np.zeros(program.ranks, np.int64)
        self.length_ns = step_ns

    def observe(self, times: StepTimes, by_the_clock_ns: Ints) -> Ints:
        """Take a step.

        Args:
            times: Of the step.
            by_the_clock_ns: (ranks,), what of it went by the clock.

        Returns:
            How long it took, (ranks,).
        """
        if self._last is None:
            end = np.maximum(times.done.max(axis=0), times.end.max(axis=0))
        else:
            end = times.end[self._last].copy()
        took = end - self.begin_ns
        self.begin_ns = end
        whole = int(took.max())
        self.length_ns = max(whole - int(by_the_clock_ns.max()), whole // 10, 1)
        return np.asarray(np.maximum(took, 1))
