"""All events of a step as one text, with places for numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.kineto.digits import Bytes, Slots
from injectors.sim.kineto.items import Items
from injectors.sim.kineto.shapes import DECIMALS
from injectors.sim.kineto.sources import Sources, ragged
from injectors.sim.noise import Ints

WIDEST = 20
LOSSY_EVENTS = 4  # a kernel, the end of its arrow, its launch, the begin of the arrow


@dataclass(frozen=True, eq=False)
class Template:
    """The text of a step.

    Attributes:
        text: With NUL bytes where numbers will stand.
        slots: Where they stand.
        lossy: (items that may lose a record, 1 + 5): the op, where its four events begin, the end.
    """

    text: Bytes
    slots: Slots
    lossy: Ints


class _Pool:
    """Distinct texts, and blanks by decimals and width, by number."""

    def __init__(self) -> None:
        self.texts: list[bytes] = [
            b"\0" * width + (b"." + b"\0" * decimals if decimals else b"")
            for decimals in range(max(DECIMALS) + 1)
            for width in range(WIDEST)
        ]

    def blanks(self, decimals: Ints, widths: Ints) -> Ints:
        return decimals * WIDEST + widths


def template_of(items: Items, sources: Sources, widths: Ints) -> Template:
    """Write the text; `widths` are digits before the point, by field."""
    shapes, of_item = items.distinct
    pool = _Pool()
    first_text = np.zeros(len(shapes), np.int64)
    for number, shape in enumerate(shapes):
        first_text[number] = len(pool.texts)
        pool.texts.extend(shape.texts)
    texts = np.array([len(shape.texts) for shape in shapes], np.int64)[of_item]
    decimals = np.array(DECIMALS, np.int64)[sources.fields[:, 0]]
    chunk = np.empty(2 * len(widths) + len(of_item), np.int64)
    begins = np.cumsum(2 * texts - 1) - (2 * texts - 1)  # first chunk of each item
    chunk[_every_other(begins, texts)] = ragged(first_text[of_item], texts)
    field_chunks = _every_other(begins + 1, texts - 1)
    chunk[field_chunks] = pool.blanks(decimals, widths)
    sizes = np.array([len(text) for text in pool.texts], np.int64)[chunk]
    starts = np.cumsum(sizes) - sizes
    whole = b"".join([pool.texts[number] for number in chunk.tolist()])
    ends = np.append(starts[begins], len(whole))
    return Template(
        text=np.frombuffer(whole, np.uint8),
        slots=Slots(starts[field_chunks], widths, decimals),
        lossy=_lossy(items, begins, starts, ends),
    )


def _every_other(firsts: Ints, counts: Ints) -> Ints:
    """Return every second number from each of `firsts`."""
    within = ragged(np.zeros(len(counts), np.int64), counts)
    return np.repeat(firsts, counts) + 2 * within


def _lossy(items: Items, begins: Ints, starts: Ints, ends: Ints) -> Ints:
    which = np.array(items.lossy, np.int64)
    if not len(which):
        return np.zeros((0, LOSSY_EVENTS + 2), np.int64)
    events = np.array([items.shapes[number].events for number in items.lossy], np.int64)
    firsts = starts[begins[which][:, None] + 2 * events[:, :, 0]] + events[:, :, 1]
    ops = np.array([items.ops[number][0] for number in items.lossy], np.int64)
    return np.column_stack([ops, firsts, ends[which + 1]])
