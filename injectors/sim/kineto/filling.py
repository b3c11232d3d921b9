"""Working out the numbers of one rank's step, and writing them into a template."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from injectors.sim.kineto.anchors import LOST_BITS, at, field
from injectors.sim.kineto.cells import Cell
from injectors.sim.kineto.digits import Bytes, squeezed, widths, write
from injectors.sim.kineto.items import Items
from injectors.sim.kineto.shapes import DECIMALS
from injectors.sim.kineto.sources import Sources, sources_of
from injectors.sim.kineto.template import Template, template_of
from injectors.sim.noise import Ints, Keys

MILLION = 10**6
LOST_OF_65536 = 64  # chance that the record of a kernel or of its launch is lost
# Which of the four events of a launch go with the record of the kernel, or of the call.
LOST = ((0, 1, 3), (1, 2, 3))


class Sheet:
    """Events that some cells have in common, with the numbers of each.

    Args:
        items: The events.
        strides: Of all slots.
        cells: Ranks' steps, all of which did the ops of `items`.
    """

    def __init__(self, items: Items, strides: Sequence[int], cells: Sequence[Cell]) -> None:
        self._cells = cells
        self._empty = not items.shapes
        if self._empty:
            return
        sources = sources_of(items, strides)
        self._rows = [values(sources, cell) for cell in cells]
        scales = 10 ** np.array(DECIMALS, np.int64)[sources.fields[:, 0]]
        self._template = template_of(items, sources, needed_widths(self._rows, scales))
        self._scratch = np.empty_like(self._template.text)

    def text(self, number: int) -> bytes | Bytes:
        """Write the `number`-th cell's events; what is returned holds until the next call."""
        if self._empty:
            return b""
        return filled(
            self._template, self._rows[number], self._cells[number].anchors.keys, self._scratch
        )


def values(sources: Sources, cell: Cell) -> Ints:
    """Return the numbers of all fields, without their decimal points."""
    found = np.empty(len(sources.fields), np.int64)
    moments = at(sources.points, cell.anchors)
    which, points = sources.times
    found[which] = moments[points]
    which, ends = sources.lengths
    found[which] = moments[ends[1]] - moments[ends[0]]
    which, slots = sources.numbers
    found[which] = sources.fixed + sources.strides * cell.step + cell.starts[slots]
    which, rated = sources.rates
    lasting = np.maximum(moments[rated[1]] - moments[rated[0]], 1)
    found[which] = rated[2] * MILLION // lasting
    return found


def needed_widths(rows: Sequence[Ints], scales: Ints) -> Ints:
    """Return the digits before the point that each field needs for the largest of its numbers."""
    largest = rows[0].copy()
    for row in rows[1:]:
        np.maximum(largest, row, out=largest)
    return widths(largest // scales)


def filled(template: Template, numbers: Ints, keys: Keys, scratch: Bytes) -> bytes | Bytes:
    """Write the numbers.

    Args:
        template: The text.
        numbers: Of its fields.
        keys: Of the rank's ops in this step; they decide which records are lost.
        scratch: As long as the text, written over.
    """
    np.copyto(scratch, template.text)
    blanks = [write(scratch, places, numbers) for places in template.places]
    lost = _lose(scratch, template.lossy, keys)
    return squeezed(scratch.tobytes()) if lost or any(blanks) else scratch


def _lose(text: Bytes, lossy: Ints, keys: Keys) -> bool:
    drawn = field(keys[lossy[:, 0]], LOST_BITS)
    hit = np.flatnonzero(drawn < LOST_OF_65536)
    for item in hit.tolist():
        bounds = lossy[item, 1:].tolist()
        for event in LOST[int(drawn[item]) % 2]:
            text[bounds[event] : bounds[event + 1]] = 0
    return len(hit) > 0
