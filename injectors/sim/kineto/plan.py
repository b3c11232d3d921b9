"""Which events a rank's step has, and the numbers that each carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from injectors.sim.kineto.items import Items, Values
from injectors.sim.kineto.look import Looks
from injectors.sim.kineto.nesting import Around, Range, nested, present_ranges
from injectors.sim.kineto.numbering import Numbers
from injectors.sim.kineto.span_shapes import Carries, device_span_shape, span_shape
from injectors.sim.program import Program, Stream, Thread

NOTHING = Around()
GRAPH = "cudaGraphLaunch"


class Plan:
    """Items of the steps in which the same ops were done.

    Args:
        program: The step.
        numbers: Of its events.
        looks: What its ops look like to the rank.
        done: (ops,), which were done.

    Attributes:
        host, device: Items of the host's threads; those that CUPTI recorded.
    """

    def __init__(
        self, program: Program, numbers: Numbers, looks: Looks, done: NDArray[np.bool_]
    ) -> None:
        self._ops, self._numbers, self._looks = program.ops, numbers, looks
        self._around: dict[int, Around] = {}
        self._graphs: dict[Thread, int] = {}
        self.host, self.device = Items(), Items()
        present = np.flatnonzero(done).tolist()
        for thread in Thread:
            self._host(thread, [op for op in present if self._ops[op].thread == thread])
        self._device(present)
        self._device_ranges(present)

    def _host(self, thread: Thread, own: Sequence[int]) -> None:
        ranges, around = nested(present_ranges(self._numbers.spans[thread], own), own)
        self._around |= around
        upcoming = iter([*ranges, None])
        following = next(upcoming)
        for op in own:
            while following is not None and following.first == op:
                self._range(following)
                following = next(upcoming)
            made = self._looks.made[op]
            if made.host is not None:
                self.host.add(made.host, (op, op), self._values(op, op))

    def _range(self, found: Range) -> None:
        carries: Carries = ""
        number, sequence, arrow = self._numbers.span_ids[found.number], 0, 0
        for op, carriers in self._numbers.carriers_in(found.first, found.last):
            if found.number in carriers:
                carries = "flow" if carriers[-1] == found.number else "sequence"
                sequence, arrow = self._numbers.pairs[op].number, self._numbers.pairs[op].arrow
                break
        span, on_gpu = found.span, self._looks.on_gpu
        thread = int(span.thread)
        shape = span_shape(span.name, span.category, thread, found.depth, on_gpu, carries)
        values = (number, number, 0, sequence, arrow, 0, 0)
        self.host.add(shape, (found.first, found.last), values)

    def _values(self, op: int, launched_by: int) -> Values:
        """Numbers of an op; a graph's kernels have those of what launched the graph."""
        numbers = self._numbers
        pair = numbers.pairs.get(op)
        sequence, arrow = (pair.number, pair.arrow) if pair else (0, 0)
        launcher = self._looks.made[launched_by].launcher
        link = numbers.ids[launched_by]
        if launcher is not None:
            link += launcher
        else:
            around = self._around.get(launched_by, NOTHING)
            outer = around.operator or around.any
            link = numbers.span_ids[outer.number] if outer else link
        correlation = numbers.correlations[launched_by]
        return (numbers.ids[op], link, correlation, sequence, arrow, *numbers.order(op))

    def _device(self, present: Sequence[int]) -> None:
        for op in present:
            made = self._looks.made[op]
            if made.device is not None:
                values = self._values(op, self._launched_by(op))
                self.device.add(made.device, (op, op), values, made.lossy)

    def _launched_by(self, op: int) -> int:
        known = self._ops[op]
        if known.label.runtime == GRAPH:
            self._graphs[known.thread] = op
        elif known.label.runtime is None and known.label.kernel is not None:
            return self._graphs.get(known.thread, op)
        return op

    def _device_ranges(self, present: Sequence[int]) -> None:
        """Annotations once more, on each stream where they launched."""
        ends: dict[tuple[int, Stream], list[int]] = {}
        names: dict[int, str] = {}
        for op in present:
            around = self._around.get(op, NOTHING).annotation
            if around is not None and self._looks.works_on_device(op):
                ends.setdefault((around.number, self._ops[op].stream), [op, op])[1] = op
                names[around.number] = around.span.name
        for (number, stream), (first, last) in ends.items():
            own = self._numbers.span_ids[number]
            shape = device_span_shape(names[number], stream)
            self.device.add(shape, (first, last), (own, own, 0, 0, 0, 0, 0))
