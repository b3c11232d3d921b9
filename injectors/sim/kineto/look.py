"""What the ops of a program look like to one rank: its process groups and its partners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from injectors.sim.kineto.collectives import Ends, Group
from injectors.sim.kineto.op_shapes import OpShapes, op_shapes
from injectors.sim.kineto.seen import COMMUNICATION, Role
from injectors.sim.kineto.sequences import Pair
from injectors.sim.machine import Gpu
from injectors.sim.program import Kind, Op, Program

DEFAULT_GROUP = "default_pg"
View = tuple[tuple[Group | None, Ends | None], ...]


def process_groups(program: Program, rank: int, first_rank: int = 0) -> list[Group]:
    """Return the process groups that a rank is in, the one of all ranks first.

    Args:
        program: The step.
        rank: The rank, as the program counts.
        first_rank: What the program's rank 0 is called.
    """
    everyone = tuple(range(first_rank, first_rank + program.ranks))
    found = [Group(0, DEFAULT_GROUP, everyone)]
    for name, groups in program.groups.items():
        members = next((group for group in groups if rank in group), [])
        own = tuple(first_rank + member for member in members)
        if own and own != everyone:
            found.append(Group(len(found), name, own))
    return found


def view(program: Program, rank: int, first_rank: int = 0) -> View:
    """Return the rank's group and partner in each communication op; see `process_groups`."""
    groups = {group.description: group for group in process_groups(program, rank, first_rank)}
    return tuple(
        (_group(op, groups), _ends(op, rank, first_rank))
        for op in program.ops
        if op.kind in COMMUNICATION
    )


def _group(op: Op, groups: Mapping[str, Group]) -> Group:
    words = op.label.collective
    names: Sequence[str] = (op.groups, words.group if words else "")
    return next((groups[name] for name in names if name in groups), groups[DEFAULT_GROUP])


def _ends(op: Op, rank: int, first_rank: int) -> Ends | None:
    if op.kind == Kind.COLLECTIVE:
        return None
    ranks: Sequence[int] = range(len(op.peers)) if op.ranks is None else op.ranks
    if rank not in ranks:
        return Ends(rank, rank)
    own, peer = first_rank + rank, first_rank + op.peers[ranks.index(rank)]
    return Ends(own, peer) if op.kind == Kind.SEND else Ends(peer, own)


class Looks:
    """Events of a program's ops for ranks with the same view.

    Args:
        program: The step.
        gpu: The device; None where ranks compute on CPUs.
        seen: The view.
        shown: Pairs that ops show themselves.

    Attributes:
        made: Events by op.
        on_gpu: Whether the job has GPUs.
    """

    def __init__(
        self, program: Program, gpu: Gpu | None, seen: View, shown: Mapping[int, Pair]
    ) -> None:
        self._ops = program.ops
        self.on_gpu = gpu is not None
        places = (index for index, op in enumerate(program.ops) if op.kind in COMMUNICATION)
        views = dict(zip(places, seen, strict=True))
        self.made: list[OpShapes] = [
            op_shapes(op, _role(shown.get(index)), gpu, *views.get(index, (None, None)))
            for index, op in enumerate(program.ops)
        ]

    def works_on_device(self, op: int) -> bool:
        """Whether the device does something for an op."""
        known = self._ops[op]
        if not self.on_gpu or known.label.kernel is None:
            return False
        return known.kind == Kind.KERNEL or known.kind in COMMUNICATION


def _role(pair: Pair | None) -> Role:
    if pair is None:
        return ""
    return "backward" if pair.backward else "forward"
