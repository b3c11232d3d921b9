"""Events of a Kineto trace as parts, in the order of fields in which the profiler writes them."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from injectors.sim.kineto.parts import Length, Number, Parts, Point, Slot, Time, joined

PROCESS = 8  # devices are processes 0 to 7
END = "},\n"


class Lane(NamedTuple):
    """Where an event is drawn: process and thread, or device (None: the rank's own) and stream."""

    process: int | None
    thread: int

    @property
    def parts(self) -> Parts:
        """The fields `pid` and `tid`."""
        process = Number(Slot.DEVICE) if self.process is None else str(self.process)
        return ['"pid":', process, f',"tid":{self.thread}']


def text(value: Any) -> str:
    """Write a constant as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def argument(name: str, value: Any) -> Parts:
    """Write one argument; a Number stays a field."""
    if isinstance(value, Number):
        return [f"{text(name)}:", value]
    return [f"{text(name)}:{text(value)}"]


def arguments(values: dict[str, Any]) -> Parts:
    """Write arguments in their order."""
    return joined((argument(name, value) for name, value in values.items()), ",")


def complete(
    category: str, name: str | Parts, lane: Lane, first: Point, last: Point, args: Parts
) -> Parts:
    """Write a range from `first` to `last`."""
    named = [text(name)] if isinstance(name, str) else ['"', *name, '"']
    head: Parts = [f'{{"ph":"X","cat":"{category}","name":', *named, ",", *lane.parts]
    times: Parts = [',"ts":', Time(first), ',"dur":', Length(first, last)]
    return [*head, *times, ',"args":{', *args, "}", END]


def flow(
    way: Literal["s", "f"],
    name: Literal["ac2g", "fwdbwd"],
    number: Number,
    lane: Lane,
    at: Point,
) -> Parts:
    """Write one end of an arrow."""
    binding = ',"bp":"e"' if way == "f" else ""
    head: Parts = [f'{{"ph":"{way}","id":', number, ",", *lane.parts, ',"ts":', Time(at)]
    return [*head, f',"cat":"{name}","name":"{name}"{binding}', END]
