from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from injectors.sim.engine import Engine
from injectors.sim.job import Job
from injectors.sim.noise_classes import constant
from injectors.sim.program import Conditions, LoaderShape, Program, StepTimes


def nominal(program: Program) -> Conditions:
    """Return conditions under which everything runs at nominal speed."""
    ranks = program.ranks

    def all_of(value: int, *rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.full((*rows, ranks), value, np.int64)

    one, transfers = 65536, len(program.transfer_rows)
    return Conditions(
        work_q16=all_of(one, len(program.work_rows)),
        clock_q16=all_of(one),
        memory_q16=all_of(one),
        host_q16=all_of(one),
        preempt_q16=all_of(0),
        preempt_ns=all_of(0),
        transfer_q16=all_of(one, transfers),
        transfer_ns=all_of(0, transfers),
        pause_ns=all_of(0, len(program.pauses)),
        fetch_ns=all_of(1_000_000, program.batches),
        overlap_q16=all_of(0),
        contention_q16=all_of(0),
    )


@pytest.fixture
def second_step() -> Callable[[Job, Program], StepTimes]:
    """Run two steps without noise under nominal conditions; gives the second one's times."""

    def run(job: Job, program: Program) -> StepTimes:
        loader = LoaderShape(job.loader.workers, job.loader.prefetch)
        engine = Engine(program, loader, 1, "numpy", spread=constant())
        engine.step(0, nominal(program))
        return engine.step(1, nominal(program))

    return run


@pytest.fixture
def step_ns(
    second_step: Callable[[Job, Program], StepTimes],
) -> Callable[[Job, Program], int]:
    """Length of that step on rank 0, from its first mark to its last."""

    def run(job: Job, program: Program) -> int:
        ends, paths = second_step(job, program).end, [op.path for op in program.ops]
        return int(ends[paths.index("end"), 0] - ends[paths.index("begin"), 0])

    return run
