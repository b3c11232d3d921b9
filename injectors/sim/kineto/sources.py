"""Where the numbers in the events of a step come from: times of ops, and numbers counted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from injectors.sim.kineto.items import Items
from injectors.sim.kineto.parts import Slot
from injectors.sim.kineto.shapes import LENGTH, NUMBER, RATE, TIME
from injectors.sim.noise import Ints

ORDER_STRIDE = 6  # column of the items' values


@dataclass(frozen=True, eq=False)
class Sources:
    """Where the fields of a template get their numbers from.

    Attributes:
        points: (4, points): segment, share (Q16), op, nudge in ns.
        fields: (fields, 4): as of `Shape`, but with numbers of points among all.
        fixed: (NUMBER fields,), what does not differ by step and rank.
        strides: (NUMBER fields,), what is added to it with every step.
    """

    points: Ints
    fields: Ints
    fixed: Ints
    strides: Ints

    @cached_property
    def times(self) -> tuple[Ints, Ints]:
        """TIME fields, and their points."""
        return self._of(TIME)

    @cached_property
    def lengths(self) -> tuple[Ints, Ints]:
        """LENGTH fields, and (2, fields) of their points."""
        return self._of(LENGTH)

    @cached_property
    def numbers(self) -> tuple[Ints, Ints]:
        """NUMBER fields, and their slots."""
        return self._of(NUMBER)

    @cached_property
    def rates(self) -> tuple[Ints, Ints]:
        """RATE fields, and (3, fields) of their points and bytes."""
        return self._of(RATE)

    def _of(self, kind: int) -> tuple[Ints, Ints]:
        which = np.flatnonzero(self.fields[:, 0] == kind)
        columns = {TIME: [1], NUMBER: [1], LENGTH: [1, 2], RATE: [1, 2, 3]}[kind]
        table = np.ascontiguousarray(self.fields[which][:, columns].T)
        return which, table[0] if len(columns) == 1 else table


def sources_of(items: Items, strides: Sequence[int]) -> Sources:
    """Gather where fields come from; `strides` are those of all slots, ORDER's items' own."""
    shapes, of_item = items.distinct
    ops, values = items.table()
    points, point_items = gathered([shape.points for shape in shapes], of_item)
    fields, field_items = gathered([shape.fields for shape in shapes], of_item)
    points[:, 2] = ops[point_items, points[:, 2]]
    counts = np.array([len(shape.points) for shape in shapes], np.int64)[of_item]
    timed = fields[:, 0] != NUMBER
    fields[timed, 1:3] += (np.cumsum(counts) - counts)[field_items[timed], None]
    fixed, stride = _numbers(values, fields, field_items, np.array(strides, np.int64))
    return Sources(np.ascontiguousarray(points.T), fields, fixed, stride)


def _numbers(values: Ints, fields: Ints, field_items: Ints, strides: Ints) -> tuple[Ints, Ints]:
    numbers = fields[:, 0] == NUMBER
    slot, of = fields[numbers, 1], field_items[numbers]
    own = slot <= Slot.ORDER
    fixed = np.where(own, values[of, np.minimum(slot, Slot.ORDER)], 0)
    stride = np.where(slot == Slot.ORDER, values[of, ORDER_STRIDE], strides[slot])
    return fixed + fields[numbers, 2], stride


def ragged(starts: Ints, counts: Ints) -> Ints:
    """Put ranges after each other: `counts` numbers from each of `starts`.

    >>> ragged(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0)
    return np.asarray(within + np.repeat(starts - (ends - counts), counts))


def gathered(tables: Sequence[Ints], of_item: Ints) -> tuple[Ints, Ints]:
    """Put the tables of all items' shapes under each other; returns them and each row's item."""
    sizes = np.array([len(table) for table in tables], np.int64)
    starts = np.cumsum(sizes) - sizes
    counts = sizes[of_item]
    rows = np.concatenate(tables)[ragged(starts[of_item], counts)]
    return rows, np.repeat(np.arange(len(of_item)), counts)
