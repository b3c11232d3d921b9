"""What devices do, share and report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from injectors.sim.devices import Devices, DeviceState
from injectors.sim.expected import expect
from injectors.sim.job import ONE, Gpus, Job
from injectors.sim.program import Kind, Op, Program, StepTimes, Stream

MakeJob = Callable[..., Job]
MS = 10**6
OPS = [
    Op(Kind.KERNEL, "product", compute_ns=4 * MS, memory_ns=1 * MS),
    Op(Kind.KERNEL, "norm", memory_ns=2 * MS),
    Op(Kind.KERNEL, "copy", stream=Stream.COPY, memory_ns=2 * MS),
    Op(Kind.COLLECTIVE, "sum", stream=Stream.DATA_PARALLEL, memory_ns=3 * MS, groups="all"),
    Op(Kind.KERNEL, "unused", compute_ns=5 * MS, ranks=(0,)),
]


def times(rank_ms: tuple[int, ...] = (1, 1, 1, 1)) -> StepTimes:
    """Ops take what they cost, times a rank's factor; the last does not happen."""
    start = np.full((5, 4), 10, np.int64)
    took = np.array([4, 2, 2, 3, 0])[:, None] * MS * np.array(rank_ms)
    end = start + took
    start[4] = end[4] = -1
    nothing = np.full((5, 4), -1, np.int64)
    return StepTimes(start, start, start, start, end, nothing, nothing, nothing)


@pytest.fixture
def devices(make_job: MakeJob) -> Callable[..., Devices]:
    def of(**gpus: Any) -> Devices:
        program = Program(4, OPS, groups={"all": [[0, 1, 2, 3]]})
        job = make_job(gpus=Gpus(**gpus))
        assert job.machine.gpu is not None
        return Devices(job, program, job.machine.gpu, expect(program))

    return of


def seen(devices: Devices, steps: int = 3, took_ms: int = 10, **of: Any) -> DeviceState:
    for _ in range(steps):
        devices.observe(times(**of), np.full(4, took_ms * MS))
    assert len(devices.states) == steps
    return devices.states[-1]


def test_work_is_counted_by_what_it_keeps_busy(devices: Callable[..., Devices]) -> None:
    state = seen(devices(), rank_ms=(1, 1, 2, 1))
    assert state.kernels_ns.tolist() == [6 * MS, 6 * MS, 12 * MS, 6 * MS]
    assert state.compute_ns.tolist() == [4 * MS, 4 * MS, 8 * MS, 4 * MS]
    assert state.memory_ns.tolist() == [3 * MS, 3 * MS, 6 * MS, 3 * MS]
    assert state.communication_ns.tolist() == [3 * MS, 3 * MS, 6 * MS, 3 * MS]


def test_a_healthy_device_runs_at_its_clock(devices: Callable[..., Devices]) -> None:
    found = devices()
    state = seen(found)
    assert set(state.clock_mhz.tolist()) <= {1950, 1965, 1980}
    assert (abs(found.clock_q16 - ONE) < ONE // 50).all()
    # 75 W + 625 W * (0.98 * 0.4 + 0.4 * 0.3 + 0.1 * 0.3), the boards' own spread of 2.5 % apart
    assert state.power_mw / 1000 == pytest.approx([414] * 4, rel=0.08)


def test_a_slow_chip_is_slow_for_good_and_says_nothing(devices: Callable[..., Devices]) -> None:
    found = devices(silicon_q16={1: ONE * 8 // 10})
    state = seen(found)
    assert found.clock_q16 / ONE == pytest.approx([1, 1.25, 1, 1], rel=0.02)
    assert state.clock_mhz[1] == pytest.approx(1584, abs=25)
    assert (state.reasons == 0).all()


def test_neighbours_slow_a_device_by_their_grade(devices: Callable[..., Devices]) -> None:
    found = devices(neighbours={0: 1, 1: 2, 2: 3})
    assert found.shared_q16 / ONE == pytest.approx([1.16, 1.40, 2.03, 1], rel=1e-4)
    assert found.clock_q16 / ONE == pytest.approx([1.16, 1.40, 2.03, 1], rel=0.02)
    state = seen(found)
    assert (state.clock_mhz >= 1950).all()  # the clock does not tell


def test_two_ranks_on_a_device_leave_another_idle(devices: Callable[..., Devices]) -> None:
    found = devices(device_of={1: 0})
    assert found.shared_q16.tolist() == [2 * ONE, 2 * ONE, ONE, ONE]
    state = seen(found)
    assert state.kernels_ns.tolist() == [12 * MS, 0, 6 * MS, 6 * MS]
    assert state.reasons[1] == 1 and state.power_mw[1] == 75_000


def test_a_rank_has_the_clock_of_the_device_that_it_was_given(
    devices: Callable[..., Devices],
) -> None:
    found = devices(device_of={1: 0}, silicon_q16={0: ONE // 2})
    assert found.clock_q16[0] == found.clock_q16[1] > 3.9 * ONE


def test_heat_shows_from_the_first_step(devices: Callable[..., Devices]) -> None:
    hot = devices(inlet_c={3: 45}, resistance_mc_per_w={3: 130})
    before = hot.clock_q16
    assert before[3] > 1.1 * ONE and (before[:3] < 1.02 * ONE).all()
    state = seen(hot)
    assert 82_000 < state.temperature_mc[3] < 88_000 and state.reasons[3] == 0x20
