"""Kineto traces of a simulated run.

A step's text is written once for all ranks and steps in which the same ops were done; for each of
them it is copied and the numbers are filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from injectors.sim.backends import Backend
from injectors.sim.kineto import marks
from injectors.sim.kineto.cells import CellMaker, Recorded
from injectors.sim.kineto.filling import Sheet
from injectors.sim.kineto.header import Within, header
from injectors.sim.kineto.look import Looks, View, process_groups, view
from injectors.sim.kineto.numbering import Numbers, numbered
from injectors.sim.kineto.packing import packed
from injectors.sim.kineto.pairing import pairing, spans_of
from injectors.sim.kineto.plan import Plan
from injectors.sim.kineto.seen import COMMUNICATION
from injectors.sim.program import Kind, Stream


def write_traces(
    run: Recorded,
    ranks: Sequence[int],
    *,
    within: Within | None = None,
    with_steps: bool = True,
    backend: Backend = "auto",
) -> dict[int, bytes]:
    """Write the traces of some ranks.

    Args:
        run: What was kept of the run.
        ranks: Some of the sampled ones.
        within: What the program's ranks are called, where it is a part of a larger job.
        with_steps: Whether steps are named `ProfilerStep#N`, as torch.profiler's schedule does.
        backend: "numba", "numpy", or "auto": numba where it is installed. The bytes are the same.

    Returns:
        Gzip-compressed JSON by rank: times in us since the run's start, as the rank's clock has
        them.
    """
    writer = _Writer(run, ranks, within or Within(0, run.job.places.ranks), with_steps, backend)
    return {rank: packed(writer.pieces(rank)) for rank in ranks}


class _Page(NamedTuple):
    """A rank's step: its events on the host and on the device, at its place among the cells."""

    host: Sheet
    device: Sheet
    place: int


class _Writer:
    def __init__(
        self,
        run: Recorded,
        ranks: Sequence[int],
        within: Within,
        with_steps: bool,
        backend: Backend,
    ) -> None:
        self._run, self._gpu, self._backend = run, run.job.machine.gpu, backend
        self._within = within
        self._cells = CellMaker(run)
        spans = spans_of(run.program, with_steps)
        pairs = pairing(run.program, spans)
        views = {rank: view(run.program, rank, within.first_rank) for rank in ranks}
        looks = {
            seen: Looks(run.program, self._gpu, seen, pairs.shown) for seen in set(views.values())
        }
        some = looks[views[ranks[0]]]
        self._numbers = numbered(run.program, spans, pairs, some.made, self._cells.paths)
        self._pages: dict[tuple[int, int], _Page] = {}
        for (seen, done), steps in self._alike(views).items():
            self._write(looks[seen], np.frombuffer(done, np.bool_), steps)

    def _alike(self, views: Mapping[int, View]) -> dict[tuple[View, bytes], dict[int, list[int]]]:
        """Gather the ranks' steps in which the same ops were done, and look the same."""
        found: dict[tuple[View, bytes], dict[int, list[int]]] = {}
        for rank, seen in views.items():
            column = self._run.sampled.index(rank)
            for step, times in sorted(self._run.kept.items()):
                done = (times.host[:, column] >= 0).tobytes()
                found.setdefault((seen, done), {}).setdefault(rank, []).append(step)
        return found

    def _write(
        self, looks: Looks, done: NDArray[np.bool_], steps: Mapping[int, Sequence[int]]
    ) -> None:
        plan = Plan(self._run.program, self._numbers, looks, done)
        ranks = {rank: self._cells.cells(rank, own) for rank, own in steps.items()}
        strides = _strides(self._numbers)
        host, device = (
            Sheet(items, strides, ranks, self._backend) for items in (plan.host, plan.device)
        )
        for rank, own in steps.items():
            for place, step in enumerate(own):
                self._pages[rank, step] = _Page(host, device, place)

    def pieces(self, rank: int) -> Iterator[bytes]:
        """Yield a rank's document, piece by piece."""
        job, steps = self._run.job, sorted(self._run.kept)
        start_ns, end_ns = self._cells.window_ns(rank)
        groups = process_groups(self._run.program, rank, self._within.first_rank)
        yield header(job, rank, self._within, groups).encode()
        pages = [self._pages[rank, step] for step in steps]
        for page in pages:
            yield page.host.text(rank, page.place)
        for page in pages:
            yield page.device.text(rank, page.place)
        tracks = marks.tracks(job, self._cells.device(rank), self._streams(), start_ns)
        yield ",\n".join([*tracks, *marks.profiler_marks(start_ns, end_ns)]).encode()
        yield b"\n]}\n"

    def _streams(self) -> list[Stream]:
        """Streams on which something is done."""
        kinds = (Kind.KERNEL, Kind.SYNC, *COMMUNICATION)
        return sorted({op.stream for op in self._run.program.ops if op.kind in kinds})


def _strides(numbers: Numbers) -> list[int]:
    """How far each slot's numbers go on with every step; ORDER's differ by process group."""
    ids, correlations, pairs = numbers.strides
    return [ids, ids, correlations, pairs, pairs, 0, 1, 0]
