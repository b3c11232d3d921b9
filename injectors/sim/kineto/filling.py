"""Working out the numbers of one rank's step, and writing them into a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from injectors.sim.backends import Backend
from injectors.sim.kineto.anchors import LOST_BITS, at, field
from injectors.sim.kineto.cells import Cells
from injectors.sim.kineto.digits import Bytes, squeezed, widths
from injectors.sim.kineto.items import Items
from injectors.sim.kineto.number_writer import number_writer
from injectors.sim.kineto.shapes import DECIMALS
from injectors.sim.kineto.sources import Sources, sources_of
from injectors.sim.kineto.template import template_of
from injectors.sim.noise import Ints, Keys

MILLION = 10**6
LOST_OF_65536 = 64  # chance that the record of a kernel or of its launch is lost
# Which of the four events of a launch go with the record of the kernel, or of the call.
LOST = ((0, 1, 3), (1, 2, 3))


class Sheet:
    """Events that ranks' steps have in common, with the numbers of each.

    Args:
        items: The events.
        strides: Of all slots.
        ranks: Ranks' steps, in all of which the ops of `items` were done.
        backend: Of the writing of numbers.
    """

    def __init__(
        self,
        items: Items,
        strides: Sequence[int],
        ranks: Mapping[int, Cells],
        backend: Backend = "auto",
    ) -> None:
        self._ranks = ranks
        self._empty = not items.shapes
        if self._empty:
            return
        sources = sources_of(items, strides)
        self._rows = {rank: values(sources, cells) for rank, cells in ranks.items()}
        scales = 10 ** np.array(DECIMALS, np.int64)[sources.fields[:, 0]]
        widths = needed_widths([*self._rows.values()], scales)
        self._template = template_of(items, sources, widths)
        self._writer = number_writer(self._template.slots, backend)
        self._scratch = np.empty_like(self._template.text)

    def text(self, rank: int, place: int) -> bytes:
        """Write the events of a rank's step, by its place among the cells."""
        if self._empty:
            return b""
        np.copyto(self._scratch, self._template.text)
        blank = self._writer.write(self._scratch, self._rows[rank][place])
        keys = self._ranks[rank].anchors.keys[place]
        lost = lose(self._scratch, keys, self._template.lossy)
        text = self._scratch.tobytes()
        return squeezed(text) if blank or lost else text


def values(sources: Sources, cells: Cells) -> Ints:
    """Return the numbers of all fields, (steps, fields), without their decimal points."""
    moments = at(sources.points, cells.anchors)
    found = np.empty((len(moments), len(sources.fields)), np.int64)
    which, points = sources.times
    found[:, which] = np.take(moments, points, axis=1)
    which, ends = sources.lengths
    first, last = (np.take(moments, end, axis=1) for end in ends)
    found[:, which] = last - first
    which, slots = sources.numbers
    counted = sources.strides * cells.steps[:, None]
    found[:, which] = counted + (sources.fixed + cells.starts[slots])
    which, rated = sources.rates
    first, last = (np.take(moments, end, axis=1) for end in rated[:2])
    lasting = np.maximum(last - first, 1)
    found[:, which] = rated[2] * MILLION // lasting
    return found


def needed_widths(rows: Sequence[Ints], scales: Ints) -> Ints:
    """Return the digits before the point that each field needs for the largest of its numbers."""
    largest = np.stack([row.max(axis=0) for row in rows]).max(axis=0)
    return widths(largest // scales)


def lose(text: Bytes, keys: Keys, lossy: Ints) -> bool:
    """Blank the records that are lost, by the keys of all ops; returns whether there are any."""
    drawn = field(keys[lossy[:, 0]], LOST_BITS)
    hit = np.flatnonzero(drawn < LOST_OF_65536)
    for item in hit.tolist():
        bounds = lossy[item, 1:].tolist()
        for event in LOST[int(drawn[item]) % 2]:
            text[bounds[event] : bounds[event + 1]] = 0
    return len(hit) > 0
