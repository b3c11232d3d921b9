"""An image classifier fed by a real DataLoader that reads real files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from injectors.workloads.base import Context, Program, Workload

if TYPE_CHECKING:
    import torch


class ImageClassifier(Workload):
    """Parameters of the network, the files and the loader."""

    title: ClassVar[str] = "Image classifier fed from files, data-parallel training"
    channels: PositiveInt = 16
    blocks: PositiveInt = 3
    pixels: PositiveInt = 64
    batch_size: PositiveInt = 16
    files: PositiveInt = 256
    workers: NonNegativeInt = 2
    prefetch: PositiveInt = 2
    augment_passes: PositiveInt = 1

    @property
    def settle_steps(self) -> int:
        """Batches fetched before the change are used up after these steps."""
        return self.workers * self.prefetch + 2

    def build(self, context: Context) -> Program:
        """Make the network, loader and optimizer of one rank."""
        return ClassifierProgram(self, context)

    def prepare(self, folder: Path, seed: int) -> None:
        """Write the image files."""
        from injectors.workloads.image_files import write_images

        write_images(folder / "images", self.files, self.pixels, seed)


class ClassifierProgram(Program):
    """The rank's network and the iterator of its loader."""

    def __init__(self, parameters: ImageClassifier, context: Context) -> None:
        import torch

        self._parameters, self._context = parameters, context
        torch.manual_seed(context.seed)
        self.model = _network(parameters).to(context.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.samples_per_step = parameters.batch_size
        self._rows: list[dict[str, Any]] = []
        self._batch = 0
        self._iterator: Iterator[Any] = iter(self._loader())

    def _loader(self) -> torch.utils.data.DataLoader[Any]:
        from torch.utils.data import DataLoader

        from injectors.workloads.image_files import EndlessBatches, ImageFiles, keep

        p, context = self._parameters, self._context
        files = ImageFiles(
            context.folder / "images", p.files, p.pixels, p.augment_passes, context.knobs
        )
        cores = context.worker_cores

        def settle_down(worker: int) -> None:
            if cores:
                os.sched_setaffinity(0, cores)

        return DataLoader(
            files,
            worker_init_fn=settle_down,
            batch_sampler=EndlessBatches(p.files, p.batch_size, context.seed + 17 * context.rank),
            num_workers=p.workers,
            prefetch_factor=p.prefetch if p.workers else None,
            collate_fn=keep,
        )

    def next_batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Wait for a batch and move it to the device."""
        from injectors.workloads.image_files import INFO

        ready = getattr(self._iterator, "_worker_result_queue", None)
        depth = None if ready is None else ready.qsize()
        images, labels, info = next(self._iterator)
        row = dict(zip(INFO, info, strict=True))
        self._rows.append({**row, "batch": self._batch, "queue_depth": depth})
        self._batch += 1
        device = self._context.device
        return images.to(device, non_blocking=True), labels.to(device, non_blocking=True)

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the cross entropy of a batch of (images, labels)."""
        import torch

        images, labels = batch
        return torch.nn.functional.cross_entropy(self.model(images), labels)

    def cold_start(self) -> None:
        """Start the loader's workers anew, as a job's first step does."""
        self.close()
        self._iterator = iter(self._loader())

    def loader_rows(self) -> list[dict[str, Any]]:
        """Return and forget the rows; batches are numbered from 0 in each recording."""
        rows, self._rows, self._batch = self._rows, [], 0
        return rows

    def close(self) -> None:
        """End the loader's workers."""
        shutdown = getattr(self._iterator, "_shutdown_workers", None)
        if shutdown is not None:
            shutdown()


def _network(parameters: ImageClassifier) -> torch.nn.Module:
    from torch import nn

    layers: list[nn.Module] = []
    width = 3
    for number in range(parameters.blocks):
        wider = parameters.channels * 2**number
        layers += [nn.Conv2d(width, wider, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
