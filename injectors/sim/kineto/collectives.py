"""What a trace says of communication: names and arguments as c10d records them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from injectors.sim.kineto.parts import Number, Slot
from injectors.sim.program import Collective

LISTED = 30  # c10d writes down so many ranks of a group
TYPES = {
    "c10::BFloat16": ("BFloat16", 2),
    "c10::Half": ("Half", 2),
    "float": ("Float", 4),
    "double": ("Double", 8),
    "long int": ("Long", 8),
    "int": ("Int", 4),
    "unsigned char": ("Byte", 1),
}
# NCCL's name of a collective -> c10d's name of the range around it.
RANGES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "_allgather_base": "_all_gather_base",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "_reduce_scatter_base",
    "all_to_allv": "all_to_all",
    "all_to_all": "all_to_all",
    "broadcast": "broadcast",
    "send": "send",
    "recv": "recv",
}
GATHERS = ("allgather", "_allgather_base")
SCATTERS = ("reduce_scatter", "_reduce_scatter_base")


class Group(NamedTuple):
    """A process group as its members know it: number, description, ranks."""

    number: int
    description: str
    ranks: tuple[int, ...]


class Ends(NamedTuple):
    """Ranks between which data are sent."""

    source: int
    target: int


def range_name(collective: Collective, backend: str, ends: Ends | None) -> str:
    """Name the range around a collective.

    >>> range_name(Collective("allreduce", 8, "float", "default_pg", 2), "nccl", None)
    'nccl:all_reduce'
    """
    name = RANGES.get(collective.op, collective.op)
    if ends is not None and backend == "nccl":
        here, there = ends if collective.op == "send" else (ends.target, ends.source)
        return f"{backend}:{name} {here}{'->' if collective.op == 'send' else '<-'}{there}"
    if backend == "gloo":
        name = name.removeprefix("_").removesuffix("_base")
    return f"{backend}:{name}"


def elements(collective: Collective) -> tuple[int, int]:
    """Return how many elements a rank puts in and gets out; the payload is the whole tensor."""
    whole = collective.bytes // TYPES.get(collective.dtype, ("", 1))[1]
    part = whole // collective.world
    if collective.op in GATHERS:
        return part, whole
    if collective.op in SCATTERS:
        return whole, part
    return whole, whole


def listed(ranks: Sequence[int]) -> str:
    """Write a group's ranks as c10d does, long lists cut.

    >>> listed([0, 1])
    '[0, 1]'
    """
    if len(ranks) <= LISTED:
        return f"[{', '.join(map(str, ranks))}]"
    return f"[{', '.join(map(str, ranks[: LISTED - 1]))}, ..., {ranks[-1]}]"


def described(collective: Collective, group: Group, ends: Ends | None) -> dict[str, Any]:
    """Return the arguments of a collective's kernel and of its `record_param_comms`."""
    put_in, got_out = elements(collective)
    found: dict[str, Any] = {
        "Collective name": collective.op,
        "In msg nelems": put_in,
        "Out msg nelems": got_out,
        "Group size": len(group.ranks),
        "dtype": TYPES.get(collective.dtype, (collective.dtype, 1))[0],
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": str(group.number),
        "Process Group Description": group.description,
        "Process Group Ranks": listed(group.ranks),
    }
    if ends is not None:
        found |= {"Dst Rank": ends.target, "Src Rank": ends.source}
    return found | {"Seq": Number(Slot.ORDER)}
