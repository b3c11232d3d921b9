"""What c10d says of communication."""

from __future__ import annotations

import pytest

from injectors.sim.kineto.collectives import (
    Ends,
    Group,
    described,
    elements,
    listed,
    range_name,
)
from injectors.sim.program import Collective


def moved(op: str, world: int = 4) -> Collective:
    return Collective(op, 4096, "c10::BFloat16", "data", world)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("allreduce", (2048, 2048)),
        ("_allgather_base", (512, 2048)),
        ("_reduce_scatter_base", (2048, 512)),
        ("all_to_allv", (2048, 2048)),
    ],
)
def test_elements_of_4096_bytes_on_4_ranks(op: str, expected: tuple[int, int]) -> None:
    assert elements(moved(op)) == expected


def test_ranges_are_named_as_the_backend_does() -> None:
    assert range_name(moved("_allgather_base"), "nccl", None) == "nccl:_all_gather_base"
    assert range_name(moved("_allgather_base"), "gloo", None) == "gloo:all_gather"
    assert range_name(moved("send"), "nccl", Ends(2, 6)) == "nccl:send 2->6"
    assert range_name(moved("recv"), "nccl", Ends(2, 6)) == "nccl:recv 6<-2"


def test_long_lists_of_ranks_are_cut() -> None:
    assert listed(range(30)).count(",") == 29
    assert listed(range(31)) == f"[{', '.join(map(str, range(29)))}, ..., 30]"


def test_arguments_name_group_and_partner() -> None:
    found = described(moved("send", 2), Group(3, "pipeline", (1, 5)), Ends(1, 5))
    assert found["Process Group Name"] == "3"
    assert found["Process Group Ranks"] == "[1, 5]"
    assert (found["Src Rank"], found["Dst Rank"], found["dtype"]) == (1, 5, "BFloat16")
