"""case.json of simulated cases: the job as it is, and never the problem."""

from __future__ import annotations

from collections import Counter

import pytest

from injectors.sim import noise
from injectors.sim.job import Places
from injectors.sim.public import RELEASES, gpu_name, links, sampled_ranks, topology


def test_two_hosts_have_one_path_with_all_ranks_at_its_ends() -> None:
    places = Places(ranks=4, per_host=2, data=4)
    found = topology(places, has_gpus=True, stages=False)
    assert [(place.host, place.gpu) for place in found.ranks] == [
        ("host0", "host0/gpu0"),
        ("host0", "host0/gpu1"),
        ("host1", "host1/gpu0"),
        ("host1", "host1/gpu1"),
    ]
    (link,) = found.links
    assert link.name == "host0-host1" and link.ranks == (0, 1, 2, 3)
    assert found.parallelism == {"data": 4}


def test_each_pair_of_four_hosts_has_a_path_and_of_more_each_host_has_one_to_the_switch() -> None:
    assert len(links(Places(ranks=32, per_host=8))) == 6
    many = links(Places(ranks=40, per_host=8))
    assert {*many} == {f"host{host}-switch" for host in range(5)}
    assert many["host4-switch"] == tuple(range(32, 40))
    assert links(Places(ranks=8, per_host=8)) == {}


def test_stages_and_splits_are_named_where_there_are_several() -> None:
    places = Places(ranks=8, per_host=8, data=2, tensor=2, pipeline=2)
    found = topology(places, has_gpus=False, stages=True)
    assert [place.stage for place in found.ranks] == [0] * 4 + [1] * 4
    assert found.parallelism == {"data": 2, "tensor": 2, "pipeline": 2}
    assert all(place.gpu is None for place in found.ranks)
    assert gpu_name(places, 7) == "host0/gpu7"


def test_versions_go_together() -> None:
    assert len({release["torch"] for release in RELEASES}) == len(RELEASES)
    assert all({*release} == {"torch", "cuda", "nccl", "driver"} for release in RELEASES)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_rank_0_and_others_get_traces(count: int) -> None:
    places = Places(ranks=16, per_host=8, data=16)
    chosen = [sampled_ranks(places, noise.key(0, str(n)), count) for n in range(200)]
    assert all(ranks[0] == 0 and len({*ranks}) == count for ranks in chosen)
    others = Counter(rank for ranks in chosen for rank in ranks[1:])
    assert 0 not in others
    if count > 1:
        assert {*others} == {*range(1, 16)}
        assert max(others.values()) < 3 * 200 * (count - 1) / 15


def test_which_ranks_get_traces_is_drawn_by_the_group_alone() -> None:
    places = Places(ranks=64, per_host=8, data=64)
    assert sampled_ranks(places, 5, 2) == sampled_ranks(places, 5, 2)
    assert len({sampled_ranks(places, key, 2) for key in range(50)}) > 20
