"""Host time under contention, quotas and slow hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.cpu_time import (
    DAEMONS_Q16,
    LONGEST_NS,
    REMOTE_HOST_Q16,
    CpuTime,
    Losses,
    cpu_time,
    threads_q16,
)
from injectors.sim.expected import Expected, expect
from injectors.sim.job import ONE, Host, Job, Loader, Places
from injectors.sim.program import Kind, Op, Program

MakeJob = Callable[..., Job]
# Threads are busy for 10 ms of a step, in a thousand pieces; nothing on a device.
TEN_MS = Expected(*(np.full(4, n) for n in (10_000_000, 0, 0, 0, 1_000)))


@pytest.fixture
def job(make_job: MakeJob) -> MakeJob:
    def of(cores: int = 8, loader: Loader | None = None, **host: Any) -> Job:
        return make_job(cores=cores, loader=loader or Loader(workers=0), host=Host(**host))

    return of


def lost(job: Job) -> list[float]:
    """Time without a core for each unit of CPU time, beside what daemons take."""
    return [(x - DAEMONS_Q16) / ONE for x in cpu_time(job, TEN_MS).losses.lost_q16.tolist()]


def test_a_quiet_host_is_nominal(job: MakeJob) -> None:
    found: CpuTime = cpu_time(job(), TEN_MS)
    assert found.host_q16.tolist() == found.worker_q16.tolist() == [ONE] * 4
    assert found.losses.lost_q16.tolist() == [DAEMONS_Q16] * 4


def test_foreign_threads_matter_when_cores_run_out(job: MakeJob) -> None:
    assert lost(job(hogs={0: 6})) == [0, 0, 0, 0]
    # Two ranks and ten others on eight cores: everyone gets two thirds.
    assert lost(job(hogs={0: 10})) == [0.5, 0.5, 0, 0]
    assert lost(job(hogs={1: 14})) == [0, 0, 1, 1]


def test_foreign_threads_give_way_by_their_nice_value_and_idle_part_of_the_time(
    job: MakeJob,
) -> None:
    assert lost(job(hogs={0: 14}, hog_duty_q16=ONE // 2)) == [0.125, 0.125, 0, 0]
    nice = lost(job(hogs={0: 100}, hog_nice=19))  # of weight 15 beside 1024
    assert nice == [0, 0, 0, 0]


def test_threads_on_a_ranks_own_core_share_it(job: MakeJob) -> None:
    assert lost(job(pinned_hogs={2: 1})) == [0, 0, 1, 0]
    assert lost(job(pinned_hogs={0: 2}, hog_duty_q16=ONE // 4)) == [0.5, 0, 0, 0]


def test_ranks_on_one_core_share_it(job: MakeJob) -> None:
    assert lost(job(shared_core=(1, 3))) == [0, 1, 0, 1]


def test_ranks_beyond_the_cores_are_slower_throughout(job: MakeJob) -> None:
    found = cpu_time(job(cores=1), TEN_MS)
    assert found.host_q16.tolist() == [2 * ONE] * 4
    assert found.losses.lost_q16.tolist() == [DAEMONS_Q16] * 4


def test_a_quota_below_what_the_rank_needs_holds_it_back(job: MakeJob) -> None:
    assert lost(job(quota_q16={0: ONE // 2, 1: 2 * ONE})) == [1, 0, 0, 0]
    # Two workers that are busy for half of each step need a core more.
    workers = Loader(workers=2, decode_ns=5_000_000)
    assert lost(job(quota_q16={0: ONE}, loader=workers)) == [1, 0, 0, 0]


def test_a_quota_holds_for_the_rest_of_its_period(job: MakeJob) -> None:
    found = cpu_time(job(quota_q16={0: ONE // 2}), TEN_MS)
    chance, longest = found.losses.preemption(np.full(4, 10_000))
    # After 50 ms of running come 50 ms of none; daemons' short stalls come far more often.
    assert longest[0] / 2 > 10 * longest[1] / 2
    assert chance[0] * longest[0] / 2 / ONE == pytest.approx(10_000 * (1 + 0.003), rel=0.01)


def test_slow_cores_and_remote_memory_are_factors(job: MakeJob) -> None:
    found = cpu_time(job(frequency_q16={1: ONE // 2}, remote_memory=(0,)), TEN_MS)
    assert found.host_q16.tolist() == [REMOTE_HOST_Q16, ONE, 2 * ONE, 2 * ONE]


def test_more_threads_than_cores_get_in_each_others_way(job: MakeJob) -> None:
    """Measured on two ranks and two cores: 8 threads 1.71, 32 threads 3.0."""
    two = replace(job(cores=2), places=Places(2, 2, data=2))
    factors = []
    for threads in (1, 8, 32):
        two.host.threads = threads
        factors.append(threads_q16(two, 1) / ONE)
    assert factors == pytest.approx([1, 1.71, 3.0], rel=0.1)


@given(
    st.lists(
        st.tuples(st.integers(1, 5 * ONE), st.integers(100_000, 100_000_000)),
        min_size=1,
        max_size=4,
    ),
    st.integers(1_000, 4_000_000),
)
def test_stalls_take_what_they_should_on_average(
    causes: list[tuple[int, int]], piece_ns: int
) -> None:
    losses = Losses(np.zeros(1, np.int64), np.zeros(1, np.int64))
    for lost_q16, stall_ns in causes:
        losses.add(np.array([lost_q16]), stall_ns)
    chance, longest = losses.preemption(np.array([piece_ns]))
    mean_ns = int(chance[0]) * int(longest[0]) / (2 * ONE)
    should_ns = sum(lost_q16 for lost_q16, _ in causes) * piece_ns / ONE
    assert 0 < chance[0] <= ONE
    if longest[0] < LONGEST_NS:
        assert mean_ns == pytest.approx(should_ns, rel=1e-3, abs=1)


def test_a_step_is_expected_to_take_the_longer_of_host_and_device() -> None:
    ops = [
        Op(Kind.KERNEL, "a", host_ns=10, launch_ns=5, fixed_ns=7, compute_ns=90, memory_ns=40),
        Op(Kind.KERNEL, "b", host_ns=10, launch_ns=5, memory_ns=40, ranks=(1,)),
        Op(Kind.INLINE, "c", host_ns=100, compute_ns=9_000_000, ranks=(0,)),
    ]
    found = expect(Program(2, ops))
    assert found.host_ns.tolist() == [9_000_115, 30]
    assert found.device_ns.tolist() == [97, 137]
    assert found.compute_ns.tolist() == [90, 90] and found.memory_ns.tolist() == [40, 80]
    assert found.chances.tolist() == [1 + 1 + 2, 2]
    assert found.step_ns == 9_000_115
    assert found.chance_ns.tolist() == [2_250_028, 15]
