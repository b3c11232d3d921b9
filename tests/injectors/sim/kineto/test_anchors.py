"""Segments of ops, and points in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from injectors.sim.clocks import Clocks
from injectors.sim.kineto.anchors import TICK_NS, Timing, at
from injectors.sim.kineto.operators import placed
from injectors.sim.kineto.parts import ONE, Segment
from tests.injectors.sim.kineto.conftest import FIRST_STEP, OPS, times, tiny

EXACT = Clocks(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(2, np.int64))
LATE = replace(EXACT, offset_ns=np.array([50_000]))
NAMES = [op.path for op, _ in OPS]


def timing(on_gpu: bool = True) -> Timing:
    return Timing(tiny().program.ops, seed=7, on_gpu=on_gpu)


def test_segments_of_a_thread_follow_each_other() -> None:
    found = timing().anchors({FIRST_STEP: times(0)}, 0, EXACT, rank=0)
    low, span = (part[0].reshape(len(Segment), -1) for part in (found.low, found.span))
    for segment in (Segment.HOST, Segment.CALL):
        assert (low[segment] + span[segment] == low[segment + 1]).all()
    assert (low[Segment.TAIL] + span[Segment.TAIL] == times(0).done[:, 0]).all()
    forward = NAMES.index("forward")
    assert low[Segment.CALL][forward] == 60_000
    assert 300 <= span[Segment.TAIL][forward] <= 1_000


def test_points_keep_their_order_however_uneven_the_time_is_divided() -> None:
    anchors = timing().anchors({FIRST_STEP: times(0), FIRST_STEP + 1: times(1)}, 0, EXACT, 0)
    shares = np.arange(0, ONE + 1, 1024)
    for op in range(len(OPS)):
        points = np.stack([np.full_like(shares, value) for value in (0, 0, op, 0)])
        points[1] = shares
        moments = at(points, anchors)
        assert moments.shape == (2, len(shares))
        assert (np.diff(moments, axis=1) >= 0).all()


def test_the_device_counts_ticks_and_is_off_by_some_microseconds() -> None:
    found = timing().anchors({FIRST_STEP: times(0)}, 0, EXACT, rank=0)
    starts = found.low[0].reshape(len(Segment), -1)[Segment.DEVICE]
    kernels = [NAMES.index(name) for name in ("forward", "backward", "reduce", "copy")]
    assert (starts[kernels] % TICK_NS == 0).all()
    wrong = starts[kernels] - times(0).start[kernels, 0]
    assert 0 < np.abs(wrong).max() < 13_000


def test_without_a_device_there_is_one_clock() -> None:
    found = timing(on_gpu=False).anchors({FIRST_STEP: times(0)}, 0, EXACT, rank=0)
    starts = found.low[0].reshape(len(Segment), -1)[Segment.DEVICE]
    assert starts[NAMES.index("reduce")] == 131_000


def test_ops_that_were_not_done_change_nothing_on_a_late_clock() -> None:
    whole, partly = times(0), times(0)
    for name in ("host", "call", "done", "start", "end"):
        getattr(partly, name)[NAMES.index("prepare")] = -1
    both = [
        timing().anchors({FIRST_STEP: kept}, 0, LATE, rank=0).low[0].reshape(len(Segment), -1)
        for kept in (whole, partly)
    ]
    others = [place for place, name in enumerate(NAMES) if name != "prepare"]
    assert (both[0][:, others] == both[1][:, others]).all()
    assert both[0][Segment.CALL][NAMES.index("forward")] == 110_000


def test_small_operators_lie_between_those_that_launch() -> None:
    found = placed(["aten::linear", "aten::addmm"], ONE // 4, ONE)
    names = [operator.name for operator in found]
    assert names == [
        "aten::linear", "aten::t", "aten::transpose", "aten::as_strided",
        "aten::addmm", "aten::expand", "aten::as_strided",
    ]  # fmt: skip
    begins = [operator.first.share_q16 for operator in found]
    assert begins == sorted(begins)
    assert ONE // 4 < begins[0] < begins[-1] < ONE
    assert found[1].last.share_q16 < found[4].first.share_q16
    assert found[4].last.share_q16 < found[0].last.share_q16
