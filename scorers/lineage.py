"""The tree of causes with every look-up remembered: judging asks for the same few names again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from cases.schema import Fault
from scorers.inputs import Tree

Relation = Literal["cause", "ancestor"]
DEPTH = 3  # domain, mechanism, cause


class Lineage:
    """A tree of causes that remembers what it was asked.

    Args:
        tree: The tree that answers what is not remembered yet.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.causes: Mapping[str, object] = tree.causes
        self.nodes: Collection[str] = frozenset(tree.nodes)
        self._paths: dict[str, tuple[str, ...]] = {}
        self._relations: dict[tuple[str, tuple[str, ...]], dict[str, Relation]] = {}
        self._shared: dict[tuple[str, str, tuple[str, ...]], tuple[bool | None, ...]] = {}

    @classmethod
    def of(cls, tree: Tree) -> Lineage:
        """Return `tree` itself if it remembers already, else a new lineage of it."""
        return tree if isinstance(tree, Lineage) else cls(tree)

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Return the names above `name`, nearest first."""
        return self.path(name)[-2::-1]

    def covers(self, node: str, cause: str) -> bool:
        """Tell whether `node` is `cause` or stands above it."""
        return node in self.path(cause)

    def path(self, name: str) -> tuple[str, ...]:
        """Return the way down to `name`: domain, mechanism, cause, as far as it goes."""
        found = self._paths.get(name)
        if found is None:
            found = self._paths[name] = (*reversed(self._tree.ancestors(name)), name)
        return found

    def relations(self, fault: Fault) -> Mapping[str, Relation]:
        """Return every name that is right for a fault: its right causes and what stands above."""
        key = fault.cause, fault.acceptable
        found = self._relations.get(key)
        if found is None:
            right = (fault.cause, *fault.acceptable)
            found = {name: "ancestor" for cause in right for name in self.path(cause)}
            found |= dict.fromkeys(right, "cause")
            self._relations[key] = found
        return found

    def shared(self, name: str, fault: Fault) -> tuple[bool | None, ...]:
        """Say of domain, mechanism and cause whether a blamed name is right for a fault there.

        None below a name that is right as far as it goes; below one that is wrong, False.
        """
        key = name, fault.cause, fault.acceptable
        found = self._shared.get(key)
        if found is None:
            right = self.relations(fault)
            flags: list[bool | None] = [part in right for part in self.path(name)]
            flags += [None if flags[-1] else False] * (DEPTH - len(flags))
            found = self._shared[key] = tuple(flags)
        return found
