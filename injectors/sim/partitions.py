"""Partitions of a job's ranks by name, and what communication over their groups costs."""

from __future__ import annotations

from collections.abc import Callable

from injectors.sim import gloo
from injectors.sim.job import Job, Places
from injectors.sim.nccl import Choice, Nccl, Operation, Shape


class Partitions:
    """The groups of every partition that the job uses.

    Attributes:
        groups: Those asked for so far, by the partition's name; a program's own.
    """

    def __init__(self, job: Job, groups: dict[str, list[list[int]]]) -> None:
        self.groups = groups
        self._machine, self._places = job.machine, job.places
        self._nccl = Nccl(job.machine, job.network) if job.machine.gpu else None
        self._chosen: dict[tuple[str, int, str], Choice] = {}

    def members(self, name: str) -> list[list[int]]:
        """Return the groups of a partition: "data", "tensor", "expert", "pipeline", "world"...

        Raises:
            ValueError: if there is none of that name.
        """
        if name not in self.groups:
            self.groups[name] = groups_of(name, self._places)
        return self.groups[name]

    def size(self, name: str) -> int:
        """Return how many ranks each group of a partition has."""
        return max(len(members) for members in self.members(name))

    def choice(self, operation: Operation, size: int, name: str) -> Choice:
        """Return the cost of communication of `size` bytes within the groups of a partition."""
        key = (operation, size, name)
        if key not in self._chosen:
            self._chosen[key] = self._choose(operation, size, name)
        return self._chosen[key]

    def _choose(self, operation: Operation, size: int, name: str) -> Choice:
        shape = Shape.of(self.members(name), self._places)
        if operation in ("send", "recv"):
            shape = Shape(2, 2, 1) if shape.hosts > 1 else Shape(2, 1, 2)
        if self._nccl is None:
            return gloo.choose(operation, size, shape, self._machine)
        return self._nccl.choose(operation, size, shape)


def groups_of(name: str, places: Places) -> list[list[int]]:
    """Return the groups of a partition of ranks by its name."""
    known: dict[str, Callable[[], list[list[int]]]] = {
        "data": places.data_groups,
        "tensor": places.tensor_groups,
        "expert": places.expert_groups,
        "expert_data": lambda: expert_data_groups(places),
        "pipeline": lambda: pipelines(places),
        "world": lambda: [list(range(places.ranks))],
    }
    if name not in known:
        raise ValueError(f"partition must be one of {', '.join(known)}, got {name!r}")
    return known[name]()


def expert_data_groups(places: Places) -> list[list[int]]:
    """Return the groups of ranks that hold the same experts.

    >>> expert_data_groups(Places(4, 4, data=4, expert=2))
    [[0, 2], [1, 3]]
    """
    return [
        group[lane :: places.expert]
        for group in places.data_groups()
        for lane in range(places.expert)
    ]


def pipelines(places: Places) -> list[list[int]]:
    """Return the groups of ranks that hand micro-batches on to each other.

    >>> pipelines(Places(4, 4, data=2, pipeline=2))
    [[0, 2], [1, 3]]
    """
    block = places.tensor * places.data
    return [list(range(first, places.ranks, block)) for first in range(block)]
