from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.job import ONE, Network, Places
from injectors.sim.machine import MACHINES
from injectors.sim.nccl import Nccl, Operation, Shape

GIB = 2**30
NODE = Shape(ranks=8, hosts=1, per_host=8)
HOSTS = Shape(ranks=32, hosts=4, per_host=8)
OPERATIONS: tuple[Operation, ...] = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send",
)  # fmt: skip


def nccl(machine: str = "h100", **settings: object) -> Nccl:
    return Nccl(MACHINES[machine], Network(**settings))  # type: ignore[arg-type]


def bus_gb_per_s(found: Nccl, size: int, shape: Shape) -> float:
    """Bus bandwidth of an all-reduce as nccl-tests define it."""
    took = found.choose("all_reduce", size, shape).total_ns
    return 2 * (shape.ranks - 1) / shape.ranks * size / took


def test_large_all_reduces_reach_the_published_bandwidths() -> None:
    assert 460 < bus_gb_per_s(nccl("h100"), GIB, NODE) < 480
    assert 230 < bus_gb_per_s(nccl("a100"), GIB, NODE) < 250


def test_hopper_reduces_in_the_switch_within_a_host_only() -> None:
    assert nccl("h100").choose("all_reduce", GIB, NODE).algorithm == "NVLS"
    assert nccl("h100").choose("all_reduce", GIB, HOSTS).algorithm == "Ring"
    assert nccl("a100").choose("all_reduce", GIB, NODE).algorithm == "Ring"
    assert nccl("h100", peer_access=False).choose("all_reduce", GIB, NODE).algorithm == "Ring"


def test_a_small_all_reduce_is_one_round_of_latencies() -> None:
    # 6.6 us + 14 hops of 0.6 us; 8 KiB * 14/8 at LL's limit of 87.7 GB/s take 164 ns.
    found = nccl("a100").choose("all_reduce", 8192, NODE)
    assert (found.algorithm, found.protocol) == ("Ring", "LL")
    assert (found.fixed_ns, found.bytes_ns) == (15_000, 164)


def test_a_large_ring_between_hosts_by_hand() -> None:
    # Simple: 8.4 us + 56 hops of 3.4 us + 6 of 14 us. All 8 interfaces of a host carry more than
    # NVLink's 370.8 GB/s: so 1 GiB * 62/32 at that.
    found = nccl("h100").choose("all_reduce", GIB, HOSTS)
    assert (found.protocol, found.fixed_ns) == ("Simple", 282_800)
    assert found.bytes_ns == pytest.approx(GIB * 62 / 32 / 370.8, rel=0.001)


def test_ranks_alone_on_their_hosts_share_one_interface() -> None:
    # 0.95 of 400 Gbit/s: 47.5 GB/s.
    found = nccl("h100").choose("all_reduce", GIB, Shape(ranks=4, hosts=4, per_host=1))
    assert found.bytes_ns == pytest.approx(GIB * 6 / 4 / 47.5, rel=0.001)


def test_trees_win_where_many_hosts_sum_little() -> None:
    found = nccl("h100").choose("all_reduce", 2**16, Shape(ranks=1024, hosts=128, per_host=8))
    assert found.algorithm == "Tree"


def test_gathering_takes_half_of_what_reducing_does() -> None:
    both = [nccl("a100").choose(op, GIB, NODE).bytes_ns for op in ("all_reduce", "all_gather")]
    assert both[0] == pytest.approx(2 * both[1], rel=1e-6)


def test_messages_between_hosts_go_over_one_interface() -> None:
    within = nccl("h100").choose("send", 2**26, Shape(2, 1, 2))
    beyond = nccl("h100").choose("send", 2**26, Shape(2, 2, 1))
    assert beyond.bytes_ns == pytest.approx(2**26 / 47.5, rel=0.001)
    assert within.bytes_ns < beyond.bytes_ns / 4


def test_an_all_to_all_sends_most_of_it_out_of_the_host() -> None:
    # 24 of 32 parts of 64 MiB over 47.5 GB/s.
    found = nccl("h100").choose("all_to_all", 2**26, HOSTS)
    assert found.bytes_ns == pytest.approx(2**26 * 24 / 32 / 47.5, rel=0.001)


@pytest.mark.parametrize("settings", [{"transport": "socket"}, {"peer_access": False}])
def test_worse_ways_are_slower(settings: dict[str, object]) -> None:
    for operation in OPERATIONS:
        good = nccl().choose(operation, 2**26, HOSTS)
        assert nccl(**settings).choose(operation, 2**26, HOSTS).total_ns >= good.total_ns
    slow = nccl(**settings).choose("all_reduce", 2**26, HOSTS).total_ns
    assert slow > 3 * nccl().choose("all_reduce", 2**26, HOSTS).total_ns


@pytest.mark.parametrize(
    ("name", "value"),
    [("algorithm", "Tree"), ("protocol", "LL"), ("channels_q16", ONE // 8), ("algorithm", "Ring")],
)
def test_a_fixed_setting_is_never_faster(name: str, value: object) -> None:
    for size in (2**10, 2**18, 2**26):
        for shape in (NODE, HOSTS):
            free = nccl().choose("all_reduce", size, shape)
            fixed = nccl(**{name: value}).choose("all_reduce", size, shape)
            assert fixed.total_ns >= free.total_ns
            if name != "channels_q16":
                assert getattr(fixed, name) == value


def test_more_channels_than_usual_are_not_faster() -> None:
    assert nccl(channels_q16=2 * ONE).choose("all_reduce", GIB, NODE) == nccl().choose(
        "all_reduce", GIB, NODE
    )


@given(
    st.sampled_from(OPERATIONS),
    st.sampled_from([NODE, HOSTS, Shape(2, 1, 2), Shape(4, 4, 1)]),
    st.integers(1, 2**32),
    st.integers(1, 2**32),
)
def test_more_bytes_never_take_less_time(
    operation: Operation, shape: Shape, one: int, other: int
) -> None:
    found = nccl()
    times = [found.choose(operation, size, shape).total_ns for size in sorted((one, other))]
    assert times[0] <= times[1]


def test_the_shape_is_that_of_the_group_over_most_hosts() -> None:
    places = Places(ranks=16, per_host=8, data=2, tensor=8)
    assert Shape.of(places.tensor_groups(), places) == Shape(8, 1, 8)
    assert Shape.of(places.data_groups(), places) == Shape(2, 2, 1)


def test_nccl_needs_gpus() -> None:
    with pytest.raises(ValueError, match="must have GPUs"):
        Nccl(MACHINES["cpu"], Network())
