"""A data set of real images that lie on storage, read and augmented by loader workers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler, get_worker_info

from injectors.workloads.layouts import Layout

if TYPE_CHECKING:
    from injectors.recorder.knobs import Knobs

INFO = ("start_ns", "fetch_ns", "read_ns", "cpu_ns", "read_bytes", "worker")


@dataclass(frozen=True)
class Reader:
    """Which worker of which rank reads; a rank that loads by itself is worker -1."""

    rank: int
    ranks: int
    worker: int


def read_latency_s(reader: Reader, batch: int, knobs: Knobs) -> float:
    """Return how long each read of a batch waits, as knobs ask for it.

    Either for one rank after the other, each for a turn of batches, or for the rank and the
    worker that are named.
    """
    turn = int(knobs["latency_turn_batches"])
    if turn:
        meant = batch // turn % reader.ranks == reader.rank
    else:
        named = knobs["latency_rank"], knobs["latency_worker"]
        meant = named[0] in (-1, reader.rank) and named[1] in (-1, reader.worker)
    return knobs["read_latency_s"] if meant else 0.0


class ImageFiles(Dataset[Any]):
    """Reads, unpacks and augments; fetches a whole batch at once and times it."""

    def __init__(
        self, layout: Layout, pixels: int, passes: int, knobs: Knobs, place: tuple[int, int]
    ) -> None:
        """`place` is the rank and the number of ranks."""
        self._layout, self._knobs, self._place = layout, knobs, place
        self._pixels, self._passes = pixels, passes
        self._fetched = 0
        self._core, self._cores_at_start = -1, os.sched_getaffinity(0)

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
        """Return images (batch, 3, pixels, pixels), labels, and the timings named in INFO."""
        worker = self._prepare()
        start_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        contents, read_bytes = self._layout.read(indices)
        read_ns = time.monotonic_ns() - start_ns
        images = torch.stack([self._decode(content) for content in contents])
        info = [
            start_ns,
            time.monotonic_ns() - start_ns,
            read_ns,
            time.thread_time_ns() - cpu_ns,
            read_bytes,
            worker,
        ]
        return images, torch.tensor([index % 10 for index in indices]), info

    def _prepare(self) -> int:
        """Follow the knobs before a batch; returns the worker's number, -1 in the rank itself."""
        info = get_worker_info()
        worker, workers = (-1, 1) if info is None else (info.id, info.num_workers)
        batch = self._fetched * workers + max(worker, 0)  # workers take batches in turn
        self._fetched += 1
        reader = Reader(*self._place, worker)
        self._layout.storage.latency_s = read_latency_s(reader, batch, self._knobs)
        if worker >= 0:
            self._move_to(int(self._knobs["worker_core"]))
        return worker

    def _move_to(self, core: int) -> None:
        """Run on one core, or on those that the worker was started with."""
        if core == self._core:
            return
        if self._core < 0:
            self._cores_at_start = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self._cores_at_start if core < 0 else {core})
        self._core = core

    def _decode(self, stored: bytes) -> torch.Tensor:
        flat = np.frombuffer(self._layout.unpack(stored), np.uint8)
        image = flat.reshape(self._pixels, self._pixels, 3).astype(np.float32) / 255.0
        for _ in range(self._passes * int(self._knobs["decode_passes"])):
            image = _smooth_and_flip(image)
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def _smooth_and_flip(image: np.ndarray) -> np.ndarray:
    """One augmentation pass: a 3x3 blur and a mirror."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    blurred: np.ndarray = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0
    return blurred[:, ::-1]


class Batches(Sampler[list[int]]):
    """Batches of indices: `length` of them make an epoch, 0 an endless one.

    Endless, so that no epoch boundary interrupts a trial. They are drawn at random; a scan takes
    them in stored order, from `first` on and round.
    """

    def __init__(
        self, files: int, batch_size: int, length: int, seed: int, first: int | None = None
    ) -> None:
        self._files, self._batch_size, self._length = files, batch_size, length
        self._random = np.random.default_rng(seed)
        self._next = first

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self._length) if self._length else count():
            yield self._draw()

    def _draw(self) -> list[int]:
        if self._next is None:
            drawn: list[int] = self._random.integers(0, self._files, self._batch_size).tolist()
            return drawn
        first, self._next = self._next, (self._next + self._batch_size) % self._files
        return [(first + offset) % self._files for offset in range(self._batch_size)]


def keep(batch: Any) -> Any:
    """Collate nothing: the data set already returns whole batches."""
    return batch
