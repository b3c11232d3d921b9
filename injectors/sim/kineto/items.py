"""Events in the order of the file: shapes, each at its ops and with its own numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from injectors.sim.kineto.shapes import Shape
from injectors.sim.noise import Ints

Values = tuple[int, int, int, int, int, int, int]  # of the slots ID to ORDER, and ORDER's stride


@dataclass(eq=False)
class Items:
    """Columns with one entry an item.

    Attributes:
        shapes: What its events look like.
        ops: The ops whose times its points are of.
        values: Its numbers; only those that the shape uses matter.
        lossy: Numbers of the items that may lose a record.
    """

    shapes: list[Shape] = field(default_factory=list)
    ops: list[tuple[int, int]] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    lossy: list[int] = field(default_factory=list)

    def add(self, shape: Shape, ops: tuple[int, int], values: Values, lossy: bool = False) -> None:
        """Append an item."""
        if lossy:
            self.lossy.append(len(self.shapes))
        self.shapes.append(shape)
        self.ops.append(ops)
        self.values.append(values)

    @cached_property
    def distinct(self) -> tuple[list[Shape], Ints]:
        """The different shapes, and which one each item has; asked for when all are there."""
        numbers: dict[int, int] = {}
        found = [numbers.setdefault(id(shape), len(numbers)) for shape in self.shapes]
        places = {number: place for place, number in enumerate(found)}
        shapes = [self.shapes[places[number]] for number in range(len(numbers))]
        return shapes, np.array(found, np.int64)

    def table(self) -> tuple[Ints, Ints]:
        """Return ops (items, 2) and values (items, 7)."""
        return _table(self.ops, 2), _table(self.values, 7)


def _table(rows: list[tuple[int, int]] | list[Values], columns: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, columns)
