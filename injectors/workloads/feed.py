"""How batches reach a rank: a DataLoader over real files, epoch after epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader

from injectors.workloads.base import Context
from injectors.workloads.image_files import INFO, Batches, ImageFiles, keep
from injectors.workloads.layouts import Layout, PackedFile, SingleFiles
from injectors.workloads.storage import Storage

if TYPE_CHECKING:
    from injectors.workloads.image_classifier import ImageClassifier


class Feed:
    """The loader of one rank, with a row of the table `loader` for each batch."""

    def __init__(self, parameters: ImageClassifier, context: Context) -> None:
        self._parameters, self._context = parameters, context
        self._batches = self._sampler()
        self._rows: list[dict[str, Any]] = []
        self._batch = self._epochs = 0
        self._open()

    def _sampler(self) -> Batches:
        p, context = self._parameters, self._context
        seed = context.seed + 17 * context.rank
        shard = context.rank * p.files // context.world_size
        first = shard if p.layout == "packed" else None
        return Batches(p.files, p.batch_size, p.epoch_batches, seed, first)

    def _open(self) -> None:
        self._loader = self._new_loader()
        self._iterator: Iterator[Any] = iter(self._loader)

    def _new_loader(self) -> DataLoader[Any]:
        p, context = self._parameters, self._context
        place = (context.rank, context.world_size)
        cores = context.worker_cores

        def settle_down(worker: int) -> None:
            if cores:
                os.sched_setaffinity(0, cores)

        return DataLoader(
            ImageFiles(self._layout(), p.pixels, p.augment_passes, context.knobs, place),
            worker_init_fn=settle_down,
            batch_sampler=self._batches,
            num_workers=p.workers,
            prefetch_factor=p.prefetch if p.workers else None,
            persistent_workers=bool(p.epoch_batches and p.workers),
            pin_memory=context.device.type == "cuda" and context.settings["pin_memory"],
            collate_fn=keep,
        )

    def _layout(self) -> Layout:
        p, context = self._parameters, self._context
        storage = Storage(context.folder / "images", context.knobs)
        if p.layout == "files":
            return SingleFiles(storage)
        return PackedFile(storage, p.files, p.chunk_images, 3 * p.pixels**2, context.seed)

    def fetch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Wait for a batch and move it to the device."""
        ready = getattr(self._iterator, "_worker_result_queue", None)
        depth = None if ready is None else ready.qsize()
        images, labels, info = self._next()
        row = dict(zip(INFO, info, strict=True))
        self._rows.append({**row, "batch": self._batch, "queue_depth": depth})
        self._batch += 1
        device = self._context.device
        return images.to(device, non_blocking=True), labels.to(device, non_blocking=True)

    def _next(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._begin_epoch()
            return next(self._iterator)

    def _begin_epoch(self) -> None:
        """Go through the data again, with the same workers for as long as a knob lets them live."""
        self._epochs += 1
        life = int(self._context.knobs["worker_life_epochs"])
        if life and self._epochs % life == 0:
            self.restart()
        else:
            self._iterator = iter(self._loader)

    def restart(self) -> None:
        """Start the workers anew, as a job's first step does."""
        self.close()
        self._open()

    def rows(self, start_ns: int, batches: int) -> list[dict[str, Any]]:
        """Return and forget the rows, times counted from `start_ns` and batches from 0."""
        rows, self._rows, self._batch = self._rows[:batches], [], 0
        rank = self._context.rank
        return [{**row, "rank": rank, "start_ns": row["start_ns"] - start_ns} for row in rows]

    def close(self) -> None:
        """End the workers."""
        shutdown = getattr(self._iterator, "_shutdown_workers", None)
        if shutdown is not None:
            shutdown()
