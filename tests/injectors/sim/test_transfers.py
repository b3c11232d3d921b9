"""How links, interfaces and other traffic stretch transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from injectors.sim.job import ONE, Flows, Gpus, Job, Network, Places
from injectors.sim.program import Collective, Kind, Label, Op, Program
from injectors.sim.transfers import NATURAL_Q16, Transfers

MakeJob = Callable[..., Job]
SECOND = 10**9
PLACES = Places(ranks=6, per_host=2, data=3, tensor=2)


def program(name: str = "allreduce", **groups: list[list[int]]) -> Program:
    """A program with a transfer row for each partition."""
    found = Program(6, groups=groups, transfer_rows=list(groups))
    for row, partition in enumerate(groups):
        label = Label(collective=Collective(name, 1, "float", partition, 2))
        found.add(Op(Kind.COLLECTIVE, partition, label, groups=partition, transfer=row))
    return found


@pytest.fixture
def factors(make_job: MakeJob) -> Callable[..., list[list[float]]]:
    """Return a function that gives the factors of a program's rows, natural variation taken off."""

    def of(
        of: Program, machine: str = "h100", gpus: Gpus | None = None, **network: Any
    ) -> list[list[float]]:
        job = make_job(machine, PLACES, network=Network(**network), gpus=gpus or Gpus())
        usual = make_job(machine, PLACES)
        found = [Transfers(j, of).factors_q16(0, 0, SECOND) for j in (job, usual)]
        assert (found[1] >= ONE).all() and (found[1] <= ONE + NATURAL_Q16).all()
        return ((found[0] - found[1] + ONE) / ONE).round(2).tolist()

    return of


def everything() -> Program:
    return program(
        data=[[0, 2, 4], [1, 3, 5]], tensor=[[0, 1], [2, 3], [4, 5]], two=[[0, 2], [1, 3]]
    )


def test_a_slow_path_slows_the_groups_that_cross_it(factors: Callable[..., Any]) -> None:
    found = factors(everything(), link_q16={(0, 2): ONE // 4})
    assert found == [[4] * 6, [1] * 6, [1] * 6]  # the ring of three hosts closes over 0 and 2
    found = factors(everything(), link_q16={(0, 1): ONE // 4})
    assert found == [[4] * 6, [1] * 6, [4, 4, 4, 4, 1, 1]]


def test_a_slow_interface_slows_all_that_leave_its_host(factors: Callable[..., Any]) -> None:
    found = factors(everything(), nic_q16={2: ONE // 2})
    assert found == [[2] * 6, [1] * 6, [1] * 6]


def test_ranks_of_a_host_share_its_interfaces(factors: Callable[..., Any]) -> None:
    """All interfaces carry one ring: with 2 x 47.5 GB/s a third is lost before it shows less."""
    world = program(world=[[0, 1, 2, 3, 4, 5]])
    assert factors(world, nic_q16={0: ONE // 2}) == [[2] * 6]
    # NVLink carries 371 GB/s in a ring, the interfaces 95: a quarter of it does no harm yet.
    assert factors(world, nvlink_q16={0: ONE // 2}) == [[1] * 6]
    assert factors(world, nvlink_q16={0: ONE // 8})[0][0] == pytest.approx(95 / (371 / 8), rel=0.02)


def test_links_within_a_host_slow_its_own_groups(factors: Callable[..., Any]) -> None:
    found = factors(everything(), nvlink_q16={3: ONE // 5})
    assert found == [[1] * 6, [1, 1, 5, 5, 1, 1], [1] * 6]
    over_pcie = factors(everything(), nvlink_q16={3: 0})
    assert over_pcie[1] == [1, 1, 8.65, 8.65, 1, 1]  # 450 over 52 GB/s


def test_an_all_to_all_feels_a_path_by_its_part(factors: Callable[..., Any]) -> None:
    """Of three hosts each gives half of its bytes to each other one."""
    scattered = program("all_to_allv", expert=[[0, 2, 4], [1, 3, 5]])
    assert factors(scattered, link_q16={(0, 1): ONE // 2}) == [[1] * 6]
    assert factors(scattered, link_q16={(0, 1): ONE // 8}) == [[4] * 6]


def test_a_downgraded_pcie_link_slows_the_interface_behind_it(factors: Callable[..., Any]) -> None:
    found = factors(everything(), gpus=Gpus(pcie_q16={2: ONE // 4}))
    assert found[0] == [3.65, 1, 3.65, 1, 3.65, 1]  # 47.5 over 13 GB/s
    assert found[1] == [1] * 6


def test_messages_feel_the_path_between_their_ends(factors: Callable[..., Any]) -> None:
    piped = Program(6, transfer_rows=["pipeline"])
    label = Label(collective=Collective("send", 1, "float", "pipeline", 2))
    piped.add(Op(Kind.SEND, "send", label, ranks=(0, 2), peers=(2, 4)))
    assert factors(piped, link_q16={(1, 2): ONE // 2}) == [[1, 1, 2, 1, 2, 1]]


def test_pauses_of_roce_leave_a_part(factors: Callable[..., Any]) -> None:
    assert factors(everything(), transport="roce", pause_storm_q16=ONE // 4)[0] == [4] * 6
    assert factors(everything(), transport="ib", pause_storm_q16=ONE // 4)[0] == [1] * 6


def test_lost_packets_slow_tcp_by_the_root(make_job: MakeJob) -> None:
    def left(transport: Literal["ib", "socket"], ppm: int, machine: str = "h100") -> float:
        network = Network(transport=transport, loss_ppm={(0, 1): ppm})
        job = make_job(machine, PLACES, network=network)
        found = Transfers(job, program(two=[[0, 2]])).factors_q16(0, 0, SECOND)
        return int(found[0, 0]) / ONE

    # 4 connections x 1448 bytes / 60 us x sqrt(1.5 / p) of 3 GB/s.
    assert left("socket", 10_000) == pytest.approx(3e9 / (4 * 1448 / 60e-6 * 12.247), rel=0.02)
    assert left("socket", 40_000) == pytest.approx(2 * left("socket", 10_000), rel=0.02)
    # 47.5 GB/s for 10 us are 115 packets, which are sent again.
    assert left("ib", 10_000) == pytest.approx(1 + 115 * 0.01, rel=0.02)
    # gloo has one connection: 1448 bytes / 90 us of 1.25 GB/s.
    assert left("ib", 40_000, "cpu") == pytest.approx(1.25e9 / (1448 / 90e-6 * 6.124), rel=0.02)


def test_latency_is_added_for_each_crossing(make_job: MakeJob) -> None:
    job = make_job(places=PLACES, network=Network(latency_ns={(0, 1): 1_000, (1, 2): 50}))
    added = Transfers(job, everything()).added_ns()
    assert added.tolist() == [[2_100] * 6, [0] * 6, [2_000] * 4 + [0] * 2]
    gathered = program("_allgather_base", data=[[0, 2, 4]])
    assert Transfers(job, gathered).added_ns().tolist() == [[1_050, 0, 1_050, 0, 1_050, 0]]


def test_other_jobs_traffic_comes_and_goes(make_job: MakeJob) -> None:
    flows = Flows(count=1, on_ns=500_000_000, period_ns=SECOND)
    transfers = Transfers(make_job(places=PLACES, network=Network(background=flows)), everything())
    found = np.array(
        [transfers.factors_q16(s, s * SECOND // 10, (s + 1) * SECOND // 10) for s in range(100)]
    )
    data, tensor = found[:, 0], found[:, 1]
    assert (tensor == ONE).all()  # within hosts
    assert data.min() < 1.02 * ONE and 1.98 * ONE < data.max() < 2.02 * ONE
    assert (data.max(axis=1) < 1.02 * ONE).sum() > 20 < (data.min(axis=1) > 1.9 * ONE).sum()


def test_a_row_without_ops_is_nominal(make_job: MakeJob) -> None:
    nothing = Program(6, transfer_rows=["unused"])
    found = Transfers(make_job(places=PLACES), nothing)
    assert found.factors_q16(0, 0, SECOND).tolist() == [[ONE] * 6]
    assert found.added_ns().tolist() == [[0] * 6]
