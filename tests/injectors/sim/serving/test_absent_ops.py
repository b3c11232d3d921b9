"""Ops without work on any rank do not happen, in both backends alike."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from injectors.sim.engine import Engine
from injectors.sim.job import ONE
from injectors.sim.program import Conditions, Kind, LoaderShape, Noise, Op, Program, StepTimes

TIMES = ("host", "call", "done", "start", "end", "joined")


def _program() -> Program:
    program = Program(2, groups={"all": [[0, 1]]}, work_rows=["constant", "now and then"])
    program.transfer_rows = ["all"]
    for name in ("first", "second"):
        program.add(
            Op(Kind.KERNEL, name, host_ns=9000, launch_ns=5000, memory_ns=10_000, noise=Noise.SMALL)
        )
        program.add(
            Op(Kind.KERNEL, f"{name}.rare", host_ns=9000, launch_ns=5000, memory_ns=10_000, work=1)
        )
        program.add(
            Op(Kind.COLLECTIVE, f"{name}.sum", host_ns=9, launch_ns=9, groups="all", work=1)
        )
        program.add(Op(Kind.SYNC, f"{name}.wait", host_ns=1000, launch_ns=4000, work=1))
    return program


def _conditions(rare: list[int]) -> Conditions:
    one, none = np.full(2, ONE), np.zeros(2, np.int64)
    rows = np.zeros((0, 2), np.int64)
    return Conditions(
        work_q16=np.array([[ONE, ONE], rare]),
        clock_q16=one,
        memory_q16=one,
        host_q16=one,
        preempt_q16=none,
        preempt_ns=none,
        transfer_q16=np.array([one]),
        transfer_ns=np.array([none]),
        pause_ns=rows,
        fetch_ns=rows,
        overlap_q16=none,
        contention_q16=none,
    )


def _steps(backend: str, rare: list[list[int]]) -> list[StepTimes]:
    engine = Engine(_program(), LoaderShape(0), 7, backend)
    found = []
    for number, work in enumerate(rare):
        times = engine.step(number, _conditions(work))
        found.append(StepTimes(**{f.name: getattr(times, f.name).copy() for f in fields(times)}))
    return found


def test_without_work_nothing_happens_and_the_next_op_comes_at_once() -> None:
    (times,) = _steps("numpy", [[0, 0]])
    for name in TIMES:
        assert (getattr(times, name)[[1, 2, 3, 5, 6, 7]] == -1).all()
    assert (times.host[4] == times.done[0]).all()


def test_work_of_one_rank_is_enough_for_all() -> None:
    (times,) = _steps("numpy", [[0, ONE]])
    assert (times.start[[1, 2]] >= 0).all() and (times.done[3] >= times.end[2]).all()


def test_what_happened_before_is_forgotten() -> None:
    first, second = _steps("numpy", [[ONE, ONE], [0, 0]])
    assert (first.start[1] >= 0).all() and (second.start[1] == -1).all()


def test_both_backends_agree() -> None:
    pytest.importorskip("numba")
    work = [[0, 0], [ONE, 5], [0, 0], [0, 7]]
    for one, other in zip(_steps("numpy", work), _steps("numba", work), strict=True):
        for name in TIMES:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
